import { freePort as firstFreePort } from '../../start/port.ts'

/** Each worker of jest looks for ports in a stretch of the range alone: what one has found, no other takes before it is used. */
const stretch = 2_500
const worker = Number(process.env.JEST_WORKER_ID ?? 1) - 1
const lowest = 10_240 + (worker % 8) * stretch
let next = lowest + Math.floor(Math.random() * (stretch - 500))

/** A port of 127.0.0.1 on which nobody listens. */
export async function freePort(): Promise<number> {
  const port = await firstFreePort(next)
  next = port + 1 < lowest + stretch - 250 ? port + 1 : lowest
  return port
}
