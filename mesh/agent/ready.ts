import { whyNotReady } from './readiness.ts'

/**
 * Is the agent ready that listens at `MESH_LISTEN`, or that calls out from the folder of the first word? Ends with 0 if so, else with 1
 * and the reason: the health check of the container. `nightshift mesh agent ready` says the same.
 */
const [, , state = '/var/lib/nightshift-agent'] = process.argv
const wrong = await whyNotReady(state, process.env.MESH_LISTEN ?? '127.0.0.1:7474')
if (wrong !== null) {
  console.error(`${wrong}.`)
  process.exitCode = 1
}
