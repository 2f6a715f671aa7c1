trioboss create-queue email > /dev/null
# begin pause
trioboss pause email          # workers finish what runs, and claim nothing more of this queue
trioboss unpause email
# end pause
