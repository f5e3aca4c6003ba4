import { whyNotReady } from './readiness.ts'

/**
 * Whether the agent at `MESH_LISTEN`, or the one that calls out from the first word's folder, is
 * ready. Ends with 0 if so, else 1 and the reason: the container's health check. `nightshift mesh
 * agent ready` says the same.
 */
const [, , state = '/var/lib/nightshift-agent'] = process.argv
const wrong = await whyNotReady(state, process.env.MESH_LISTEN ?? '127.0.0.1:7474')
if (wrong !== null) {
  console.error(`${wrong}.`)
  process.exitCode = 1
}
