import { readFileSync } from 'node:fs'

/** The text of a file of PEM certificates; null where it cannot be read or holds none. */
export function certificatesIn(file: string): string | null {
  try {
    const text = readFileSync(file, 'utf8')
    return text.includes('-----BEGIN CERTIFICATE-----') ? text : null
  } catch {
    return null
  }
}

/** Would somebody on the way read what is said to this address? */
export function isReadable(address: string): boolean {
  return /^http:\/\/(?!localhost[:/]|127(\.\d+){3}[:/]|\[::1\])/.test(`${address}/`)
}
