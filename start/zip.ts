import { createReadStream, createWriteStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { createInflateRaw } from 'node:zlib'

interface Entry {
  name: string
  method: number
  packedBytes: number
  headerOffset: number
}

/**
 * Writes the one entry of a zip file whose name ends in `suffix` to `target`. The file is taken to be intact and honest:
 * check its digest first. No zip64, no encryption.
 */
export async function extractFromZip(zipFile: string, suffix: string, target: string): Promise<void> {
  const entry = (await listEntries(zipFile)).find(({ name }) => name.endsWith(suffix))
  if (!entry) throw new Error(`${zipFile} holds no ${suffix}`)

  const handle = await open(zipFile, 'r')
  const header = Buffer.alloc(30)
  await handle.read(header, 0, 30, entry.headerOffset).finally(() => handle.close())
  // The local header repeats the name, and its extra field may differ in length from the one in the directory.
  const start = entry.headerOffset + 30 + header.readUInt16LE(26) + header.readUInt16LE(28)
  const packed = createReadStream(zipFile, { start, end: start + entry.packedBytes - 1 })
  const out = createWriteStream(target, { mode: 0o755 })
  if (entry.method === 0) await pipeline(packed, out)
  else if (entry.method === 8) await pipeline(packed, createInflateRaw(), out)
  else
    throw new Error(
      `${entry.name} in ${zipFile} is packed by method ${entry.method}, which is neither stored nor deflate`,
    )
}

async function listEntries(zipFile: string): Promise<Entry[]> {
  const handle = await open(zipFile, 'r')
  try {
    const { size } = await handle.stat()
    // The end record is 22 bytes and a comment of at most 64 kB.
    const tail = Buffer.alloc(Math.min(size, 22 + 65_535))
    await handle.read(tail, 0, tail.length, size - tail.length)
    const end = tail.lastIndexOf(Buffer.from('PK\x05\x06', 'latin1'))
    if (end < 0) throw new Error(`${zipFile} is not a zip file`)
    const directory = Buffer.alloc(tail.readUInt32LE(end + 12))
    await handle.read(directory, 0, directory.length, tail.readUInt32LE(end + 16))

    const entries: Entry[] = []
    for (let at = 0; at + 46 <= directory.length; ) {
      const nameLength = directory.readUInt16LE(at + 28)
      entries.push({
        name: directory.toString('utf8', at + 46, at + 46 + nameLength),
        method: directory.readUInt16LE(at + 10),
        packedBytes: directory.readUInt32LE(at + 20),
        headerOffset: directory.readUInt32LE(at + 42),
      })
      at += 46 + nameLength + directory.readUInt16LE(at + 30) + directory.readUInt16LE(at + 32)
    }
    return entries
  } finally {
    await handle.close()
  }
}
