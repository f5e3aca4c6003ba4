import { crc32, deflateSync } from 'node:zlib'

export const pngSignature = Buffer.from('89504e470d0a1a0a', 'hex')

export function pngChunk(type: string, data: Buffer = Buffer.alloc(0)): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const [length, checksum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  checksum.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, checksum])
}

type Picture = {
  width: number
  height: number
  colour?: number
  depth?: number
  interlace?: number
  /** The rows as they are packed; those of a grey picture otherwise. */
  rows?: Buffer
  /** Chunks behind the header, and behind the rows. */
  before?: Buffer[]
  after?: Buffer[]
}

/** A PNG chunk by chunk, as fit or unfit as a test wants it. */
export function buildPng({
  width,
  height,
  colour = 0,
  depth = 8,
  interlace = 0,
  rows,
  before = [],
  after = [],
}: Picture): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([depth, colour, 0, 0, interlace], 8)
  const packed = deflateSync(rows ?? Buffer.alloc((width + 1) * height))
  const parts = [pngChunk('IHDR', header), ...before, pngChunk('IDAT', packed), ...after, pngChunk('IEND')]
  return Buffer.concat([pngSignature, ...parts])
}

/** Bars in red, green and blue on white, 8 bits a channel. */
export function buildChart(width = 320, height = 120): Buffer {
  const rows = Buffer.alloc((width * 3 + 1) * height, 255)
  const colours = [
    [200, 60, 50],
    [60, 150, 80],
    [50, 90, 190],
  ]
  for (let y = 0; y < height; y += 1) {
    const at = y * (width * 3 + 1)
    rows[at] = 0
    const bar = Math.floor((y * 3) / height)
    const length = Math.floor((width * (bar + 1)) / 4)
    if (y % (height / 3) > 8) for (let x = 0; x < length; x += 1) rows.set(colours[bar] ?? [], at + 1 + x * 3)
  }
  return buildPng({ width, height, colour: 2, rows })
}
