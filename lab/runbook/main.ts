import type { AddressInfo } from 'node:net'
import pino from 'pino'
import { z } from 'zod'
import { nonceSetting } from '../../domain/start-nonce.ts'
import { systemFingerprint } from './conversation.ts'
import { runbookServer } from './server.ts'

/**
 * Serves the runbook model on loopback. The model is a decision table, and every response says so.
 */
const { RUNBOOK_PORT, RUNBOOK_DELAY_MS } = z
  .object({
    RUNBOOK_PORT: z.coerce.number().int().min(0).max(65_535).default(0),
    RUNBOOK_DELAY_MS: z.coerce.number().int().min(0).default(0),
  })
  .parse(process.env)
const log = pino({ name: 'runbook' })

const server = runbookServer(RUNBOOK_DELAY_MS, process.env[nonceSetting])
server.on('error', (error) => {
  log.fatal({ err: error }, `the model cannot listen on port ${RUNBOOK_PORT}`)
  process.exit(1)
})
server.listen(RUNBOOK_PORT, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  log.info({ port, is: systemFingerprint }, 'the runbook model is ready')
})

function stop(): void {
  server.close(() => process.exit(0))
  // Closes the connections, because a response in the mood that hangs never ends by itself.
  server.closeAllConnections()
}
process.on('SIGTERM', stop)
process.on('SIGINT', stop)
