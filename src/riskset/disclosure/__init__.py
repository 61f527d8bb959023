"""What of results may be shared: the one place that decides which numbers tell a small count."""
