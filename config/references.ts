import { readFileSync } from 'node:fs'

/** A credential that a source or a job names is not there. */
export class NoCredential extends Error {
  override name = 'NoCredential' as const
}

/**
 * Reads a credential by its reference, `file:/path` or `env:NAME`, when it is needed: a new one takes effect without a restart. What
 * the file system said is in no message.
 */
export function readRef(ref: string): string {
  const [kind = '', place = ''] = ref.split(/:(.*)/s)
  try {
    const text = kind === 'file' ? readFileSync(place, 'utf8') : (process.env[place] ?? '')
    if (text.trim() !== '') return text.trim()
  } catch {
    // Said below.
  }
  const what = kind === 'file' ? `the file ${place}` : `the variable ${place}`
  throw new NoCredential(`${what} is empty or cannot be read by the API process`)
}
