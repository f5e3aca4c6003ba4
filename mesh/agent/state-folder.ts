import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'

/**
 * Makes a missing directory. Returns why this user should not write there. Null if the user may
 * write. Root should not write in a directory of another user, who could not read the files and
 * could have put a symbolic link there.
 */
export function whyNotOurs(folder: string): string | null {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    accessSync(folder, constants.W_OK | constants.X_OK)
  } catch (error) {
    return `${userInfo().username} cannot write into ${folder} (${(error as NodeJS.ErrnoException).code})`
  }
  const { uid } = statSync(folder)
  return process.getuid?.() === 0 && uid !== 0
    ? `${folder} belongs to user ${uid}, and this command runs as root`
    : null
}

const nameIn = (state: string) => join(state, 'device')
const formerIn = (state: string) => join(state, 'device.before')

/**
 * Returns the name under which this device was enrolled. Another device's manifest is invalid here,
 * even if it is signed.
 */
export function enrolledName(state: string): string | null {
  return existsSync(nameIn(state)) ? readFileSync(nameIn(state), 'utf8').trim() : null
}

/** Pins the device's name. If the name changed, a note keeps the former name for the next start. */
export function pinName(state: string, name: string): void {
  const before = enrolledName(state)
  if (before === name) return
  if (before !== null) renameSync(nameIn(state), formerIn(state))
  writeFileSync(nameIn(state), `${name}\n`, { mode: 0o600 })
}

/**
 * Moves the journal of a former device name aside, as on a copied host, because this device did not
 * do its writes. The caller holds the lock of the directory. The note is moved last, so that a
 * killed start repeats the move.
 */
export function leaveFormerName(state: string): void {
  if (!existsSync(formerIn(state))) return
  const aside = join(state, `before-${Date.now()}`)
  mkdirSync(aside, { mode: 0o700 })
  for (const name of ['nonces', 'journal', 'head.json', 'device.before'])
    if (existsSync(join(state, name))) renameSync(join(state, name), join(aside, name))
}
