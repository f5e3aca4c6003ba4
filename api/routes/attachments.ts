import { z } from '@hono/zod-openapi'
import { attachmentBytes } from '../../db/approvals/find.ts'
import type { Attachment } from '../../domain/attachment.ts'
import { endpoint } from '../http/endpoint.ts'
import { notFound } from '../http/problem.ts'

const types: Record<Attachment['kind'], string> = { text: 'text/plain; charset=utf-8', png: 'image/png' }

/**
 * The content policy for attachments: an attachment loads and runs nothing and does not belong to
 * this site, even when it is shown alone.
 */
const policy = "default-src 'none'; sandbox; frame-ancestors 'none'"

/** Serves the attachments of a dry run to people who may read its approval. */
export const attachmentRoutes = endpoint({
  method: 'get',
  path: '/approvals/{id}/attachments/{digest}',
  permission: 'read',
  tag: 'approvals',
  summary: 'A text or a picture from the dry run of an approval',
  description:
    'The digest must be listed in `dryRun.attachments` of the approval; any other digest gets 404. Nightshift wrote the bytes, which never change.',
  params: z.object({
    id: z.string().max(100),
    digest: z.string().regex(/^[0-9a-f]{64}$/, 'is not a SHA-256 digest in hexadecimal'),
  }),
  isFile: true,
  hasEtag: true,
  answer: z.string(),
  example: '',
  downloads: { 'text/plain': '-max_connections: 100\n+max_connections: 200\n', 'image/png': '…bytes…' },
  problems: [404],
  async run({ scope, params: { id, digest }, c }) {
    const found = await attachmentBytes(scope, id, digest)
    if (!found) throw notFound(`attachment ${digest} of approval ${id}`)
    const { attachment, bytes } = found
    const headers = {
      etag: `"${digest}"`,
      'cache-control': 'private, no-cache',
      'content-security-policy': policy,
      'content-disposition': `inline; filename="${toFileName(attachment)}"`,
    }
    if (c.req.header('if-none-match') === headers.etag) return c.body(null, 304, headers)
    return c.body(new Uint8Array(bytes), 200, { ...headers, 'content-type': types[attachment.kind] })
  },
})

/** Makes a file name of plain letters, with the ending of the attachment's kind. */
function toFileName({ name, kind }: Attachment): string {
  const plain = name.replace(/\.(?:png|txt)$/i, '').replace(/[^A-Za-z0-9_-]+/g, '-')
  return `${plain.replace(/^-+|-+$/g, '') || 'attachment'}.${kind === 'png' ? 'png' : 'txt'}`
}
