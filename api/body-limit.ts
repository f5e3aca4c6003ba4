import { bodyLimit } from 'hono/body-limit'
import type { Middleware } from './hono.ts'
import { answerProblem, Problem } from './problem.ts'

export const maxBodyBytes = 1024 * 1024

/** No body of more than 1 MiB is read, whatever its length header says. */
export const limitBody: Middleware = bodyLimit({
  maxSize: maxBodyBytes,
  onError: (c) => answerProblem(c, new Problem(413, 'TOO_LARGE', `The body is larger than ${maxBodyBytes} bytes.`)),
})
