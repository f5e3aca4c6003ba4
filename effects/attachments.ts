import type { Db } from '../db/connect.ts'
import { storeBody, storeBytes } from '../db/events.ts'
import { type Attachment, type Attachments, attachmentLimits, sentAttachment } from '../domain/attachment.ts'
import { formatCount } from '../domain/format.ts'
import { formatSize } from '../domain/format-approval.ts'
import { inertText } from '../domain/inert-text.ts'
import { cleanse } from '../safety/redact.ts'
import { rewritePng } from './png.ts'

/** A picture that packs worse here than it did there has this much room. */
const mostStoredBytes = 1_000_000

type Taken = { kept: Attachment; note?: string } | { why: string }

/**
 * Takes what came with a dry run: untrusted bytes. Each is bounded, written out here, and stored under the digest of what was written. What
 * does not fit is left out with a sentence for the person who decides; a dry run never fails by it. Null and undefined: nothing came.
 */
export async function takeAttachments(db: Db, sent: unknown): Promise<Attachments> {
  if (sent === undefined || sent === null) return {}
  if (!Array.isArray(sent)) return { leftOut: ['Attachments were left out: they are no list.'] }
  const attachments: Attachment[] = []
  const leftOut: string[] = []
  for (const [index, each] of sent.slice(0, attachmentLimits.count).entries()) {
    const parsed = sentAttachment.safeParse(each)
    const name = toName(parsed.success ? parsed.data.name : `attachment ${index + 1}`)
    const taken = parsed.success ? await take(db, parsed.data, name) : { why: 'it is neither a text nor a PNG' }
    if ('why' in taken) leftOut.push(`${name} was left out: ${taken.why}.`)
    else attachments.push(taken.kept)
    if ('note' in taken && taken.note) leftOut.push(taken.note)
  }
  const more = sent.length - attachmentLimits.count
  if (more > 0)
    leftOut.push(
      `${formatCount(more, 'more attachment')} ${more === 1 ? 'was' : 'were'} left out: at most ${attachmentLimits.count} are taken.`,
    )
  return { ...(attachments.length > 0 && { attachments }), ...(leftOut.length > 0 && { leftOut }) }
}

/** One line that is shown and becomes the name of a file: without what hides, and without secrets. */
function toName(sent: string): string {
  const line = inertText(cleanse(sent.slice(0, 1_000)), attachmentLimits.nameCharacters)
  return line.replace(/ +/g, ' ') || 'without a name'
}

async function take(db: Db, sent: ReturnType<typeof sentAttachment.parse>, name: string): Promise<Taken> {
  return sent.kind === 'text' ? await takeText(db, sent.text, name) : await takePng(db, sent.base64, name)
}

const longestSecret = 4_096
const headLines = 6
const headCharacters = 600

async function takeText(db: Db, sent: string, name: string): Promise<Taken> {
  const { bytes: most } = attachmentLimits
  const size = Buffer.byteLength(sent)
  const isCut = size > most
  const text = cleanse(isCut ? `${cutText(sent, most)}\n[cut here: ${formatSize(size)} were sent]` : sent)
  if (text.trim() === '') return { why: 'it is empty' }
  const { digest, bytes } = await storeBody(db, text)
  const lines = text.replace(/\n$/, '').split('\n')
  const head = lines.slice(0, headLines).join('\n').slice(0, headCharacters).toWellFormed()
  return {
    kept: { name, kind: 'text', digest, bytes, head, lines: lines.length },
    ...(isCut && { note: `Of ${name} only the first ${formatSize(most)} of ${formatSize(size)} were kept.` }),
  }
}

/** Whole lines or words of it, since half a secret would not be known as one. */
function cutText(text: string, bytes: number): string {
  const start = Buffer.from(text.slice(0, bytes)).subarray(0, bytes).toString('utf8')
  const end = Math.max(start.lastIndexOf('\n'), start.lastIndexOf(' '))
  return start.slice(0, end > bytes / 2 ? end : -longestSecret)
}

async function takePng(db: Db, base64: string, name: string): Promise<Taken> {
  const { bytes: most } = attachmentLimits
  const size = Math.floor((base64.length * 3) / 4)
  if (size > most + 3) return { why: `${formatSize(size)}, at most ${formatSize(most)}` }
  const written = await rewritePng(Buffer.from(base64, 'base64'))
  if ('why' in written) return written
  const { bytes, width, height } = written
  if (bytes.length > mostStoredBytes) return { why: `${formatSize(bytes.length)} once it is packed again` }
  return { kept: { name, kind: 'png', digest: await storeBytes(db, bytes), bytes: bytes.length, width, height } }
}
