"""Claims of papers judged, every way to train on votes ranked, and the ambiguous digits that both need."""
