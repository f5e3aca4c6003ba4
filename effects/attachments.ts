import { promisify } from 'node:util'
import { crc32, deflate, inflate } from 'node:zlib'
import type { Db } from '../db/connect.ts'
import { storeBody, storeBytes } from '../db/log/bodies.ts'
import { type Attachment, type Attachments, attachmentLimits, sentAttachment } from '../domain/attachment.ts'
import { formatCount, formatNumber } from '../domain/format.ts'
import { formatSize } from '../domain/format-approval.ts'
import { inertText } from '../domain/inert-text.ts'
import { cleanse } from '../safety/redact.ts'

/**
 * Rewrites untrusted pictures. A PNG is rows of samples, packed by zlib, between a header and an
 * end (ISO/IEC 15948). The header is checked before anything is unpacked. The rows are unpacked
 * into exactly the size that the header gives, and packed again here. The written file has only
 * header, palette, transparency, rows and end: no text, no profile, no second picture, and nothing
 * after the end.
 */

const signature = Buffer.from('89504e470d0a1a0a', 'hex')

/** Channels of each colour type, and the bits per sample that are allowed. */
const colourTypes: Record<number, { channels: number; depths: number[] }> = {
  0: { channels: 1, depths: [1, 2, 4, 8, 16] },
  2: { channels: 3, depths: [8, 16] },
  3: { channels: 1, depths: [1, 2, 4, 8] },
  4: { channels: 2, depths: [8, 16] },
  6: { channels: 4, depths: [8, 16] },
}
const indexed = 3

type Header = { width: number; height: number; depth: number; colour: number; bytes: Buffer }
type Parts = { header: Header; palette: Buffer | null; transparency: Buffer | null; packed: Buffer }

/** Thrown if a picture is refused. The message is the reason, as the end of a sentence. */
class Unfit extends Error {}
const broken = () => new Unfit('the file is not a complete PNG')

type RewrittenPicture = { bytes: Buffer; width: number; height: number } | { why: string }

/** Writes a PNG again, as this process would have made it. Returns the reason if it is refused. */
export async function rewritePng(sent: Buffer): Promise<RewrittenPicture> {
  try {
    const parts = readParts(sent)
    const { header } = parts
    const rows = await unpack(parts)
    const bytes = await writePng({ ...parts, rows })
    return { bytes, width: header.width, height: header.height }
  } catch (error) {
    if (error instanceof Unfit) return { why: error.message }
    throw error
  }
}

function readParts(sent: Buffer): Parts {
  if (!sent.subarray(0, 8).equals(signature)) throw new Unfit('the file is not a PNG')
  let [header, palette, transparency]: [Header | null, Buffer | null, Buffer | null] = [null, null, null]
  const packed: Buffer[] = []
  for (const { type, data } of readChunks(sent)) {
    if (!header) {
      if (type !== 'IHDR') throw broken()
      header = readHeader(data)
    } else if (type === 'IDAT') {
      packed.push(data)
    } else if (type === 'PLTE') {
      if (palette || packed.length > 0) throw broken()
      palette = data
    } else if (type === 'tRNS') {
      if (transparency || packed.length > 0) throw broken()
      transparency = data
    } else if (type === 'IEND') {
      return fitToColours({ header, palette, transparency, packed: Buffer.concat(packed) })
    } else if (type === 'acTL' || type === 'fcTL' || type === 'fdAT') {
      throw new Unfit('the picture is animated')
    } else if (isCritical(type)) {
      throw new Unfit('the file has a part that the PNG standard does not define')
    }
  }
  throw broken()
}

/**
 * Whether a part is needed to draw the picture; the type of such a part begins with a capital
 * letter.
 */
const isCritical = (type: string): boolean => /^[A-Z]/.test(type)

function* readChunks(sent: Buffer): Generator<{ type: string; data: Buffer }> {
  for (let at = signature.length; at + 12 <= sent.length; ) {
    const length = sent.readUInt32BE(at)
    const end = at + 8 + length
    if (end + 4 > sent.length) throw broken()
    const type = sent.toString('latin1', at + 4, at + 8)
    if (!/^[A-Za-z]{4}$/.test(type)) throw broken()
    if (crc32(sent.subarray(at + 4, end)) !== sent.readUInt32BE(end)) throw new Unfit('a checksum in the file is wrong')
    yield { type, data: sent.subarray(at + 8, end) }
    at = end + 4
  }
}

function readHeader(data: Buffer): Header {
  if (data.length !== 13) throw broken()
  const [width, height] = [data.readUInt32BE(0), data.readUInt32BE(4)]
  const [depth, colour, compression, filter, interlace] = [...data.subarray(8)] as [
    number,
    number,
    number,
    number,
    number,
  ]
  if (width === 0 || height === 0 || compression !== 0 || filter !== 0) throw broken()
  if (!colourTypes[colour]?.depths.includes(depth)) throw broken()
  const { side } = attachmentLimits
  if (width > side || height > side)
    throw new Unfit(`${formatNumber(width)} x ${formatNumber(height)} px, at most ${formatNumber(side)}`)
  if (interlace !== 0) throw new Unfit('the picture is interlaced')
  return { width, height, depth, colour, bytes: data }
}

/** Checks palette and transparency against the colour type. Leaves out suggested palettes. */
function fitToColours(parts: Parts): Parts {
  const { header, palette, transparency } = parts
  if (header.colour === indexed) {
    const colours = (palette?.length ?? 0) / 3
    const isFit = Number.isInteger(colours) && colours > 0 && colours <= 2 ** header.depth
    if (!isFit || (transparency?.length ?? 0) > colours) throw broken()
    return parts
  }
  const wanted = { 0: 2, 2: 6 }[header.colour]
  if (transparency && transparency.length !== wanted) throw broken()
  return { ...parts, palette: null }
}

const toInflated = promisify(inflate)
const toDeflated = promisify(deflate) as (bytes: Buffer, options: object) => Promise<Buffer>

/**
 * Unpacks the rows, each after the number of its filter, in no more memory than the header implies.
 */
async function unpack({ header: { width, height, depth, colour }, packed }: Parts): Promise<Buffer> {
  const rowBytes = 1 + Math.ceil((width * depth * (colourTypes[colour]?.channels ?? 1)) / 8)
  const size = rowBytes * height
  const rows = await toInflated(packed, { maxOutputLength: size }).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ERR_BUFFER_TOO_LARGE' ? new Unfit('the data is larger than its header states') : broken()
  })
  if (rows.length !== size) throw broken()
  for (let at = 0; at < size; at += rowBytes) if ((rows[at] ?? 0) > 4) throw broken()
  return rows
}

async function writePng({ header, palette, transparency, rows }: Omit<Parts, 'packed'> & { rows: Buffer }) {
  return Buffer.concat([
    signature,
    chunk('IHDR', header.bytes),
    ...(palette ? [chunk('PLTE', palette)] : []),
    ...(transparency ? [chunk('tRNS', transparency)] : []),
    chunk('IDAT', await toDeflated(rows, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

function chunk(type: string, data: Buffer): Buffer {
  const [length, checksum] = [Buffer.alloc(4), Buffer.alloc(4)]
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  length.writeUInt32BE(data.length)
  checksum.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, checksum])
}

/** Most bytes of a stored picture, because a picture may pack worse here than when it was sent. */
const maxStoredBytes = 1_000_000

type Taken = { kept: Attachment; note?: string } | { why: string }

/**
 * Takes the attachments of a dry run, which are untrusted bytes. Each attachment is limited,
 * encoded again, and stored under its digest. A refused attachment is left out, with a sentence for
 * the person who decides; no dry run fails because of an attachment. Null and undefined mean no
 * attachments.
 */
export async function takeAttachments(db: Db, sent: unknown): Promise<Attachments> {
  if (sent === undefined || sent === null) return {}
  if (!Array.isArray(sent)) return { leftOut: ['Attachments were left out: they are not a list.'] }
  const attachments: Attachment[] = []
  const leftOut: string[] = []
  for (const [index, each] of sent.slice(0, attachmentLimits.count).entries()) {
    const parsed = sentAttachment.safeParse(each)
    const name = toName(parsed.success ? parsed.data.name : `attachment ${index + 1}`)
    const taken = parsed.success
      ? await take(db, parsed.data, name)
      : { why: 'the attachment is neither a text nor a PNG' }
    if ('why' in taken) leftOut.push(`${name} was left out: ${taken.why}.`)
    else attachments.push(taken.kept)
    if ('note' in taken && taken.note) leftOut.push(taken.note)
  }
  const more = sent.length - attachmentLimits.count
  if (more > 0)
    leftOut.push(
      `${formatCount(more, 'more attachment')} ${more === 1 ? 'was' : 'were'} left out: at most ${attachmentLimits.count} are accepted.`,
    )
  return { ...(attachments.length > 0 && { attachments }), ...(leftOut.length > 0 && { leftOut }) }
}

/** Returns a file name as one line that can be shown, without hidden characters and secrets. */
function toName(sent: string): string {
  const line = inertText(cleanse(sent.slice(0, 1_000)), attachmentLimits.nameCharacters)
  return line.replace(/ +/g, ' ') || 'without a name'
}

async function take(db: Db, sent: ReturnType<typeof sentAttachment.parse>, name: string): Promise<Taken> {
  return sent.kind === 'text' ? await takeText(db, sent.text, name) : await takePng(db, sent.base64, name)
}

const maxSecretCharacters = 4_096
const headLines = 6
const headCharacters = 600

async function takeText(db: Db, sent: string, name: string): Promise<Taken> {
  const { bytes: most } = attachmentLimits
  const size = Buffer.byteLength(sent)
  const isCut = size > most
  const text = cleanse(isCut ? `${cutText(sent, most)}\n[cut here: ${formatSize(size)} were sent]` : sent)
  if (text.trim() === '') return { why: 'the text is empty' }
  const { digest, bytes } = await storeBody(db, text)
  const lines = text.replace(/\n$/, '').split('\n')
  const head = lines.slice(0, headLines).join('\n').slice(0, headCharacters).toWellFormed()
  return {
    kept: { name, kind: 'text', digest, bytes, head, lines: lines.length },
    ...(isCut && { note: `${name} was cut: the first ${formatSize(most)} of ${formatSize(size)} were kept.` }),
  }
}

/** Cuts at whole lines or words, because a part of a secret would not be recognised as a secret. */
function cutText(text: string, bytes: number): string {
  const start = Buffer.from(text.slice(0, bytes)).subarray(0, bytes).toString('utf8')
  const end = Math.max(start.lastIndexOf('\n'), start.lastIndexOf(' '))
  return start.slice(0, end > bytes / 2 ? end : -maxSecretCharacters)
}

async function takePng(db: Db, base64: string, name: string): Promise<Taken> {
  const { bytes: most } = attachmentLimits
  const size = Math.floor((base64.length * 3) / 4)
  if (size > most + 3) return { why: `${formatSize(size)}, at most ${formatSize(most)}` }
  const written = await rewritePng(Buffer.from(base64, 'base64'))
  if ('why' in written) return written
  const { bytes, width, height } = written
  if (bytes.length > maxStoredBytes) return { why: `${formatSize(bytes.length)} after repacking` }
  return { kept: { name, kind: 'png', digest: await storeBytes(db, bytes), bytes: bytes.length, width, height } }
}
