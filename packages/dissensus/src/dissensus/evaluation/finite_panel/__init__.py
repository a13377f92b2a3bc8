"""What few votes an item can and cannot tell: corrections, and what a perfect model would score."""
