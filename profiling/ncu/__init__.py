"""What an Nsight Compute report says about a kernel: label, speed of light, roofline, occupancy, stalls, hot lines."""
