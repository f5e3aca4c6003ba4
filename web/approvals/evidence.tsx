import type { ApprovalDetail, Evidence as Row } from '../../domain/approval.ts'
import { Inert } from '../inert.tsx'
import { Link } from '../router.tsx'

/** What the approval rests on: rows of the log, so that a person can check the reason against them. */
export function Evidence({ approval }: { approval: ApprovalDetail }) {
  const { incidentId, evidence } = approval
  return (
    <ul className="evidence">
      {evidence.map((row) => (
        <li key={row.seq}>
          <Link href={`/incidents/${incidentId}#e-${row.seq}`}>row {row.seq}</Link> <Told row={row} />
        </li>
      ))}
      <li>
        <Link href={`/incidents/${incidentId}`}>The whole incident</Link>
      </li>
    </ul>
  )
}

function Told({ row: { what, tool, about, found } }: { row: Row }) {
  if (what === 'proposed') return <>what the agent wrote when it proposed this</>
  if (what === 'alert') {
    return (
      <span className="wraps">
        <Inert text={found} />
      </span>
    )
  }
  return (
    <>
      <code>
        <Inert text={tool ?? ''} />
      </code>{' '}
      <span className="small">
        about <Inert text={about.map(({ id }) => id).join(', ')} />
      </span>{' '}
      <span className="soft small wraps">
        <Inert text={found} />
      </span>
    </>
  )
}
