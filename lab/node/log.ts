import { closeSync, fstatSync, openSync, readSync } from 'node:fs'

export const logFile = 'data/log'

/** More than one record, so that the end of the file always holds a whole one. */
const tailBytes = 256

/** When the newest whole record of a log was written, in milliseconds; null for a log that has none. */
export function newestRecordAt(file: string): number | null {
  let fd: number
  try {
    fd = openSync(file, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
  try {
    const { size } = fstatSync(fd)
    const from = Math.max(0, size - tailBytes)
    const tail = Buffer.alloc(size - from)
    readSync(fd, tail, 0, tail.length, from)
    return newestRecordIn(tail.toString('utf8'))
  } finally {
    closeSync(fd)
  }
}

/** The same for a piece of a log, which may begin and end in the middle of a record. */
export function newestRecordIn(text: string): number | null {
  const whole = text.slice(0, text.lastIndexOf('\n') + 1)
  return Number(/"at":(\d+),"n":\d+\}\n$/.exec(whole)?.[1] ?? 0) || null
}
