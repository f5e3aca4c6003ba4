import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { Readers } from './env-file.ts'

/**
 * Reads the key in a file. Reports a key that the services cannot read, before their start would
 * fail.
 */
export function readKey(file: string, services: Readers): { key: string } | { problem: string } {
  let key: string
  try {
    key = readFileSync(file, 'utf8').trim()
  } catch {
    return { problem: `the key file ${file} cannot be read` }
  }
  if (key === '') return { problem: `the key file ${file} is empty` }
  if (/\s/.test(key)) return { problem: `the key file ${file} has more than one word` }
  const isClosed =
    services !== null &&
    process.getuid?.() === 0 &&
    spawnSync('test', ['-r', file], { uid: services.uid, gid: services.gid, cwd: '/' }).status !== 0
  return isClosed ? { problem: `the user nightshift cannot read the key file ${file}` } : { key }
}
