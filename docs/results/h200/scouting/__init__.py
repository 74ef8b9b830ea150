"""The rooms of tune.py, which see torch and Triton alone and nothing of the product."""
