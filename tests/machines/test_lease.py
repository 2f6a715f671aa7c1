def test_a_job_that_its_handler_has_settled_needs_no_beats_but_has_only_its_time():
    machine = LeaseMachine(0.0, 900.0, heartbeat=8.0)

    assert machine.next(held=False) == (900.0, Due.EXPIRED)
    assert machine.next() == (2.0, Due.BEAT)
