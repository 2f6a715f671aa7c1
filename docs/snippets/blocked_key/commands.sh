python prepare.py
# begin find
trioboss blocked
trioboss show transfers 0190a5c4-0000-7000-8000-000000000002 --data
# end find
# begin change
trioboss pause transfers         # so that no worker takes the job before its data is right
trioboss retry transfers 0190a5c4-0000-7000-8000-000000000002
trioboss update-job transfers 0190a5c4-0000-7000-8000-000000000002 --data '{"number": 2, "amount": "10"}'
trioboss unpause transfers
# end change
