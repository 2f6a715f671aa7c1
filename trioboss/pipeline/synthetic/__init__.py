"""History that was made up: of any size, with statistics and violations that are known beforehand.

shapes   the queues, and how many of their jobs end how
rows     their jobs and attempts
planted  violations, and legitimate histories that look like some
"""
