import { whyNotReady } from './readiness.ts'

/**
 * Health check of the container. Checks the agent that listens at `MESH_LISTEN`, or the connected
 * agent whose state directory is the first argument. Exits with 0 if the agent is ready, otherwise
 * with 1 and the reason. `nightshift mesh agent ready` reports the same.
 */
const [, , state = '/var/lib/nightshift-agent'] = process.argv
const wrong = await whyNotReady(state, process.env.MESH_LISTEN ?? '127.0.0.1:7474')
if (wrong !== null) {
  console.error(`${wrong}.`)
  process.exitCode = 1
}
