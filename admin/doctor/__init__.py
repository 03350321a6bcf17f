"""`fairway doctor`: what is wrong with an installation, one line each, with the mend."""
