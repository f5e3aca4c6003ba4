import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { Approval } from '../../domain/approval.ts'
import type { Attachment } from '../../domain/attachment.ts'
import { formatAttachment, pathOfAttachment } from '../../domain/format-approval.ts'
import { askText } from '../api.ts'
import { Inert, inertText, TextBox } from '../inert.tsx'
import { Warning } from '../marks.tsx'

/**
 * Lists the attachments of the dry run for the person who decides, and those that were left out.
 */
export function AttachmentList({ approval: { id, dryRun } }: { approval: Approval }) {
  const { attachments = [], leftOut = [] } = dryRun
  return (
    <>
      {attachments.map((each, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: two may hold the same, and their order never changes
        <figure key={index} className="attachment stack tight">
          <figcaption className="wraps small">
            <Inert as="strong" text={each.name} /> <span className="soft">{formatAttachment(each)}</span>
          </figcaption>
          {each.kind === 'png' ? <Picture approvalId={id} picture={each} /> : <Text approvalId={id} text={each} />}
        </figure>
      ))}
      {leftOut.map((sentence) => (
        <Warning key={sentence} text={sentence} />
      ))}
    </>
  )
}

type PictureProps = { approvalId: string; picture: Attachment }

function Picture({ approvalId, picture }: PictureProps) {
  const [isMissing, setMissing] = useState(false)
  const path = pathOfAttachment(approvalId, picture)
  const name = inertText(picture.name)
  if (isMissing) return <Warning text="The picture cannot be read now." />
  return (
    <a href={path} target="_blank" rel="noreferrer">
      <img src={path} alt={name} width={picture.width} height={picture.height} onError={() => setMissing(true)} />
      <span className="visually-hidden"> in full size</span>
    </a>
  )
}

/** Shows the first lines of a text, and the whole text on request. */
function Text({ approvalId, text }: { approvalId: string; text: Attachment }) {
  const [isWhole, setWhole] = useState(false)
  const path = pathOfAttachment(approvalId, text)
  const whole = useQuery({
    queryKey: ['attachment', path],
    staleTime: Number.POSITIVE_INFINITY,
    enabled: isWhole,
    queryFn: ({ signal }) => askText(path, signal),
  })
  const head = text.head ?? ''
  const hasMore = new TextEncoder().encode(head).length < text.bytes
  const name = inertText(text.name)
  return (
    <>
      <TextBox label={name} text={(isWhole && whole.data) || head} />
      {whole.isError && <Warning text="The rest cannot be read now." />}
      {hasMore && (
        <p>
          <button type="button" className="bare small" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
            {isWhole ? 'Show the first lines' : `Show all ${text.lines} lines`}
            <span className="visually-hidden"> of {name}</span>
          </button>
        </p>
      )}
    </>
  )
}
