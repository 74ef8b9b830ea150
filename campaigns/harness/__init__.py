"""The verdict harness: it builds, checks and times one candidate kernel against a problem.

Nothing in this package imports Django. ``evaluate(request)`` takes plain data and returns plain data, so it runs on a
GPU host that has the broker and nothing else.
"""
