-- Whether a worker serves a queue: <pattern> is the name of the queue, or has * for any letters.
<queue> LIKE replace(replace(<pattern>, '_', '\_'), '*', '%')
