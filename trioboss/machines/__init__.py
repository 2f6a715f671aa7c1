"""What happens next: decisions without I/O. Events in, commands out, time passed in."""
