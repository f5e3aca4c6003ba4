import { fileURLToPath } from 'node:url'
import { giveBack, isFree } from '../../start/port.ts'
import { searchAttributes, startTemporal, type Temporal } from '../../start/temporal.ts'
import { findTemporalCli } from '../../start/temporal-cli.ts'
import { eventually } from './eventually.ts'

const rootDir = fileURLToPath(new URL('../..', import.meta.url))
const portOf = (address: string) => Number(address.slice(address.lastIndexOf(':') + 1))

type OwnTemporal = {
  current: Temporal
  /** Starts it again from its file and at its ports, after it was stopped or killed. */
  again(): Promise<void>
  stop(): Promise<void>
}

/** A Temporal that a test may kill, with its file in this directory. */
export async function ownTemporal(dir: string): Promise<OwnTemporal> {
  const cli = await findTemporalCli({ rootDir, env: process.env })
  const start = (ports?: { frontend: number; ui: number }) =>
    startTemporal({
      ...{ cli: cli.path, dir, searchAttributes, logFile: `${dir}/temporal.log`, env: process.env },
      ...(ports ? { ports } : {}),
    })
  const own: OwnTemporal = {
    current: await start(),
    async again() {
      const ports = { frontend: portOf(own.current.address), ui: portOf(own.current.uiUrl) }
      for (const port of Object.values(ports)) {
        giveBack(port)
        // The kernel closes a killed server's ports a moment later.
        await eventually(`port ${port} to be free`, () => isFree(port))
      }
      own.current = await start(ports)
    },
    stop: async () => void (await own.current.stop()),
  }
  return own
}
