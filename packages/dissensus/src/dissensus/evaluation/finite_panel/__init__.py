"""What few votes per item can and cannot tell: corrections, and what a perfect model would score."""
