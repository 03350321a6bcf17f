"""What the estimators are asked and what they said."""
