import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { parseEnv } from 'node:util'
import { CommandFailed } from '../exit-codes.ts'

/** A file of settings that systemd and a shell can read: `NAME=value`, one per line. */
export type Values = Record<string, string>

/**
 * Reads the settings in a file. Empty if there is no file. Throws CommandFailed if it cannot be
 * read.
 */
export function readEnvFile(file: string): Values {
  try {
    return parseEnv(readFileSync(file, 'utf8')) as Values
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw new CommandFailed('error', `${file} cannot be read: ${(error as Error).message}.`)
  }
}

/** The user and group that may read the files of setup. Null keeps the rights of this process. */
export type Readers = { uid: number; gid: number } | null

/**
 * Writes these settings into the file in one step. Lines keep their order, and comments and other
 * settings stay. Keeps a copy of the old file and returns its path. Null without an old file.
 */
export function writeEnvFile(file: string, values: Values, readers: Readers, now = new Date()): string | null {
  const before = existsSync(file) ? readFileSync(file, 'utf8') : null
  const kept = before === null ? null : `${file}.${now.toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z`
  const left = new Map(Object.entries(values))
  const lines = (before ?? '').split('\n').map((line) => {
    const name = /^\s*(?:export\s+)?([A-Z_][A-Z0-9_]*)=/.exec(line)?.[1]
    const value = name === undefined ? undefined : left.get(name)
    if (name === undefined || value === undefined) return line
    left.delete(name)
    return `${name}=${quote(name, value)}`
  })
  while (lines.at(-1) === '') lines.pop()
  const added = [...left].map(([name, value]) => `${name}=${quote(name, value)}`)
  if (kept !== null && !existsSync(kept)) linkSync(file, kept)
  replace(file, `${[...lines, ...added].join('\n')}\n`, readers)
  return kept
}

/** Writes a secret unless its file exists. Returns whether the secret was written. */
export function makeSecret(file: string, text: string, readers: Readers): boolean {
  if (existsSync(file)) return false
  replace(file, text, readers)
  return true
}

function replace(file: string, text: string, readers: Readers): void {
  const draft = join(dirname(file), `.${basename(file)}.${process.pid}`)
  try {
    writeFileSync(draft, text, { mode: 0o600 })
    const old = statSync(file, { throwIfNoEntry: false })
    // Takes the right to read from all users but owner and group, because the file may now contain
    // a secret.
    if (old) chmodSync(draft, old.mode & 0o770)
    else if (readers) chmodSync(draft, 0o640)
    const owner = old ?? readers
    if (owner && process.getuid?.() === 0) chownSync(draft, old ? old.uid : 0, owner.gid)
    renameSync(draft, file)
  } finally {
    rmSync(draft, { force: true })
  }
}

/** Quotes a value for both systemd and sh. Refuses a value that they would read differently. */
function quote(name: string, value: string): string {
  if (/^[\w./:@%+,=~-]*$/.test(value)) return value
  if (!/['\n\\]/.test(value)) return `'${value}'`
  throw new CommandFailed(
    'usage',
    `${name} holds a quote, a backslash or a line break, which systemd and a shell read differently: percent-encode it, or name a file with ${name}_FILE.`,
  )
}
