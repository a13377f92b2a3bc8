"""The pages of annotators and researchers, and who may ask for what."""
