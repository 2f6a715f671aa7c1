"""What a job is: frozen values and the rules between them. No I/O, no clock."""
