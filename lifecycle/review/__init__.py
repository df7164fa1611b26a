"""What a change of policy means before it holds: pure comparisons and checks over values that others have made."""
