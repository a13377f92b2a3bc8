"""What has been collected: votes, quality, adaptive rounds, pay, progress and exports."""
