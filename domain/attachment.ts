import { z } from 'zod'

/**
 * Limits of the attachments of a dry run. The sizes apply to attachments as they were sent. The
 * dimensions of a picture are read from its header, before decoding.
 */
export const attachmentLimits = { count: 4, bytes: 256_000, nameCharacters: 80, side: 2_000 } as const

const name = z.string().describe('Shown as the title and as the text in place of a picture; at most 80 characters.')

/** An attachment of a dry run, for the person who decides. A model never sees the attachment. */
export const sentAttachment = z
  .union([
    z.object({ name, kind: z.literal('text'), text: z.string().describe('A text of more than 256 kB is cut.') }),
    z.object({
      name,
      kind: z.literal('png'),
      base64: z.string().describe('A PNG of at most 256 kB and 2,000 x 2,000 px, neither interlaced nor animated.'),
    }),
  ])
  .describe(
    'A text or a picture that helps a person to decide. An attachment that exceeds the limits is left out, with the reason.',
  )

export type SentAttachment = z.infer<typeof sentAttachment>

/**
 * A stored attachment. Its bytes are stored under the digest of the re-encoded form, not of the
 * form that was sent.
 */
const attachment = z.object({
  name: z.string(),
  kind: z.enum(['text', 'png']),
  digest: z.string(),
  bytes: z.number().int(),
  /** Width and height of a picture in pixels; absent for a text. */
  width: z.number().int().optional(),
  height: z.number().int().optional(),
  /** The first lines of a text, and how many lines the text has; absent for a picture. */
  head: z.string().optional(),
  lines: z.number().int().optional(),
})

export type Attachment = z.infer<typeof attachment>

/**
 * Fields of a dry run with attachments. `leftOut`: a sentence about each attachment that is missing
 * or cut.
 */
export const attachmentFields = {
  attachments: z.array(attachment).optional(),
  leftOut: z.array(z.string()).optional(),
}

export type Attachments = { attachments?: Attachment[]; leftOut?: string[] }
