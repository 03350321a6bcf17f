"""`fairway install` and `fairway uninstall`: steps that look before they act, and the way back."""
