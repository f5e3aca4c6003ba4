import { execFile } from 'node:child_process'
import { chownSync } from 'node:fs'
import { promisify } from 'node:util'
import type { LabAccount } from '../children.ts'
import type { DatabaseName } from './faults.ts'

export type LabServer = {
  name: DatabaseName
  kind: 'postgresql' | 'mysql'
  role: 'primary' | 'replica'
  replicatesFrom: DatabaseName | null
  port: number
  url: string
  /** The server's value of the label `instance` in monitoring. */
  instance: string
}

export const adminName = 'lab_admin'

/** Passwords of the database users, generated at each start. */
export type Secrets = Record<'admin' | 'app' | 'replicator' | 'exporter' | 'read' | 'write', string>

/** The directory of the servers, and the user that runs them. */
export type DrawerPlace = { directory: string; account: LabAccount | null; giveAway(file: string): void }

export const drawerPlace = (directory: string, account: LabAccount | null): DrawerPlace => ({
  directory,
  account,
  giveAway: (file) => account && chownSync(file, account.uid, account.gid),
})

export function serverUrl({ port }: LabServer, user: string, password: string, database = 'shop'): string {
  return `postgresql://${user}:${password}@127.0.0.1:${port}/${database}`
}

const run = promisify(execFile)

/** Runs a program as the servers' user, in their directory. An error contains its last output. */
export async function runAsNode(
  { directory, account }: DrawerPlace,
  program: string,
  args: string[],
  variables: Record<string, string> = {},
): Promise<string> {
  const env = { PATH: '/usr/bin:/bin:/usr/sbin', HOME: directory, LC_ALL: 'C', ...variables }
  const options = { cwd: directory, env, timeout: 60_000, maxBuffer: 16 * 1024 * 1024, ...account }
  try {
    return (await run(program, args, options)).stdout
  } catch (error) {
    const said = (error as { stderr?: string }).stderr?.trim().split('\n').slice(-2).join(' ') ?? ''
    throw new Error(`${program} failed: ${said || (error as Error).message}`)
  }
}
