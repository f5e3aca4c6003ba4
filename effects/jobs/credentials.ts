import { readFileSync } from 'node:fs'
import { cleanse } from '../../safety/cleanse.ts'

/** A credential that a job names is not there: nothing was begun. */
export class NoCredential extends Error {
  override name = 'NoCredential' as const
}

type Value = string | { from: string; prefix: string }

/** Credentials of one step of a job, read when it begins. They never leave this process but to where they belong. */
export type Credentials = {
  read(ref: string): string
  fill(values: Record<string, Value>): Record<string, string>
  /** A text without any of them, and without whatever else looks like a secret. */
  hide(text: string): string
}

export function openCredentials(): Credentials {
  const known = new Set<string>()
  const read = (ref: string): string => {
    const secret = readRef(ref)
    for (const line of [secret, ...secret.split('\n')]) if (line.length >= 4) known.add(line)
    return secret
  }
  return {
    read,
    fill: (values) =>
      Object.fromEntries(
        Object.entries(values).map(([name, value]) => [
          name,
          typeof value === 'string' ? value : `${value.prefix}${read(value.from)}`,
        ]),
      ),
    hide(text) {
      let safe = text
      for (const secret of known) safe = safe.replaceAll(secret, '[redacted]')
      return cleanse(safe)
    },
  }
}

function readRef(ref: string): string {
  const [kind = '', place = ''] = ref.split(/:(.*)/s)
  try {
    const text = kind === 'file' ? readFileSync(place, 'utf8') : (process.env[place] ?? '')
    if (text.trim() !== '') return text.trim()
  } catch {
    // Said below, without what the file system said about it.
  }
  const what = kind === 'file' ? `the file ${place}` : `the variable ${place}`
  throw new NoCredential(`${what} is empty or cannot be read by the API process`)
}

/** PEM of authorities; it is no secret. */
export function readCa(file: string | undefined): { ca: string } | null {
  return file === undefined ? null : { ca: readRef(`file:${file}`) }
}
