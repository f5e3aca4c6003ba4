import { z } from 'zod'

/**
 * Limits of a dry run's attachments. A text or picture counts as it is sent; a picture by its
 * header, before it is unpacked.
 */
export const attachmentLimits = { count: 4, bytes: 256_000, nameCharacters: 80, side: 2_000 } as const

const name = z.string().describe('Shown as the title and as the text in place of a picture; at most 80 characters.')

/** What a platform sends beside a dry run, for the person who decides. A model never sees it. */
export const sentAttachment = z
  .union([
    z.object({ name, kind: z.literal('text'), text: z.string().describe('Beyond 256 kB it is cut.') }),
    z.object({
      name,
      kind: z.literal('png'),
      base64: z.string().describe('A PNG of at most 256 kB and 2,000 x 2,000 px, neither interlaced nor animated.'),
    }),
  ])
  .describe('A text or a picture that helps a person to decide. One that does not fit is left out, with the reason.')

export type SentAttachment = z.infer<typeof sentAttachment>

/**
 * A stored attachment: its bytes lie under the digest of what was written out here, not of what was
 * sent.
 */
const attachment = z.object({
  name: z.string(),
  kind: z.enum(['text', 'png']),
  digest: z.string(),
  bytes: z.number().int(),
  /** For pictures. */
  width: z.number().int().optional(),
  height: z.number().int().optional(),
  /** A text's first lines, and how many it has. */
  head: z.string().optional(),
  lines: z.number().int().optional(),
})

export type Attachment = z.infer<typeof attachment>

/** Fields of a dry run with attachments. `leftOut`: a sentence for each not taken whole. */
export const attachmentFields = {
  attachments: z.array(attachment).optional(),
  leftOut: z.array(z.string()).optional(),
}

export type Attachments = { attachments?: Attachment[]; leftOut?: string[] }
