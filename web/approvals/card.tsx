import type { Approval, ApprovalDetail, Evidence } from '../../domain/approval.ts'
import { capitalize } from '../../domain/format.ts'
import {
  cardTitles,
  formatProof,
  formatReason,
  formatReversible,
  formatUnheard,
  isReadExactly,
} from '../../domain/format-approval.ts'
import { useAsk } from '../api.ts'
import { CopyCommand, CopyId } from '../copy.tsx'
import { listChanges } from '../differences.ts'
import { Hypotheses } from '../incident/page.tsx'
import { Exact, Inert, inertText } from '../inert.tsx'
import { ApprovalMark, RiskMark } from '../marks.tsx'
import { Failed, Heading, Loading } from '../page-frame.tsx'
import { StaysDownInDryRun } from '../plan/plan.tsx'
import { Link } from '../router.tsx'
import { formatMoment } from '../time.ts'
import { CallRunSteps, NextCalls, Together, useCard, useRunNews } from './calls.tsx'
import { ConsequencesOrEnd, Decide } from './decide.tsx'
import { Changes, DryRun } from './edit.tsx'
import { useDecision } from './query.ts'

export function ApprovalPage({ id }: { id: string }) {
  const approval = useAsk<ApprovalDetail>(['approval', id], `/approvals/${encodeURIComponent(id)}`)
  useRunNews(id, approval.data?.incidentId)
  if (approval.isPending) return <Loading what="the approval" />
  return (
    <>
      <p className="small">
        <Link href="/approvals">← Approvals</Link>
      </p>
      {!approval.data && <Heading title="Approval" of={{ href: '/approvals', title: 'Approvals' }} />}
      {approval.error && (
        <Failed error={approval.error} isKept={approval.data !== undefined} again={() => void approval.refetch()} />
      )}
      {approval.data && <ApprovalCard approval={approval.data} key={id} />}
    </>
  )
}

/**
 * Everything a person needs in order to decide, in the order they ask for it: what changes, what follows from each answer, how risky it
 * is, what it did where it runs, why, the plan; the arguments fold, since the title says what they do. The decision comes last.
 */
function ApprovalCard({ approval }: { approval: ApprovalDetail }) {
  const { dryRun, run } = approval
  const card = useCard(approval)
  const decision = useDecision(approval.id)
  return (
    <article className="card">
      <CardHeader approval={approval} />
      {!run && <ConsequencesOrEnd approval={approval} />}
      <Together approval={approval} card={card} isLocked={decision.isPending} />
      {approval.status === 'pending' && <StaysDownInDryRun details={dryRun.details} />}
      <Standing approval={approval} />
      {approval.unheardAt !== null && <p className="said wrong">{formatUnheard(formatMoment(approval.unheardAt))}</p>}
      {run && <CallRunSteps run={run} incidentId={approval.incidentId} />}
      <Replaced approval={approval} />
      <section className="stack tight">
        <h2>{cardTitles.reason}</h2>
        <p className="wraps lines">
          <Inert text={formatReason(approval)} />
        </p>
        {approval.hypotheses.length > 0 && <Hypotheses causes={approval.hypotheses} incidentId={approval.incidentId} />}
        <EvidenceList approval={approval} />
      </section>
      <section className="stack tight">
        <h2>{cardTitles.proof}</h2>
        <p className={`wraps ${dryRun.proof?.by === 'state' ? '' : 'said wrong'}`}>
          <Inert text={formatProof(dryRun.proof)} />
        </p>
      </section>
      <DryRun approval={approval} />
      <ExactArguments approval={approval} />
      <NextCalls next={approval.next} />
      <Expiry approval={approval} />
      <Decisions approval={approval} />
      <Decide approval={approval} card={card} decision={decision} />
      <SameByCommand id={approval.id} isPending={approval.status === 'pending'} />
    </article>
  )
}

function CardHeader({ approval: { tool, targets, dryRun } }: { approval: Approval }) {
  const named = targets.filter(({ kind }) => kind !== 'proposal')
  const main = (named.length > 0 ? named : targets).slice(0, 3)
  return (
    <header className="stack tight">
      <p className="soft">
        <code>
          <Inert text={tool} />
        </code>
      </p>
      <Heading title={inertText(dryRun.summary)} of={{ href: '/approvals', title: 'Approvals' }}>
        <Inert text={capitalize(dryRun.summary)} />
      </Heading>
      <p className="wraps">
        on {formatTargets(main) || 'no named target'}
        {targets.length > main.length && <span className="soft"> and {targets.length - main.length} more</span>}
      </p>
    </header>
  )
}

/** How risky it is, and how the question stands. */
function Standing({ approval }: { approval: Approval }) {
  const { risk, reversible, status, required, approvals } = approval
  return (
    <p className="row">
      <RiskMark risk={risk} />
      <span className={reversible ? '' : 'tone-broken strong'}>{formatReversible(reversible)}</span>
      <ApprovalMark status={status} />
      {required > 1 && (
        <span>
          {approvals} of {required} people have approved
        </span>
      )}
    </p>
  )
}

/** Its id, and what does the same on a terminal. */
function SameByCommand({ id, isPending }: { id: string; isPending: boolean }) {
  const commands = isPending
    ? [`nightshift approvals approve ${id}`, `nightshift approvals deny ${id} --reason 'why'`]
    : [`nightshift approvals show ${id}`]
  return (
    <details>
      <summary>Its id, and the same on a terminal</summary>
      <CopyId id={id} label="the id of the approval" />
      {commands.map((command) => (
        <div key={command}>
          <CopyCommand command={command} label={command} />
        </div>
      ))}
    </details>
  )
}

/** Open where they have to be read word by word, as a command has to be. */
function ExactArguments({ approval }: { approval: Approval }) {
  const { arguments: args, targets, actionDigest } = approval
  return (
    <section className="stack tight">
      <h2>{cardTitles.arguments}</h2>
      <details open={isReadExactly(approval)}>
        <summary>
          <Inert text={Object.keys(args).join(', ') || 'none'} />; {countTargets(targets.length)}, digest of the action
        </summary>
        <Exact value={args} label={cardTitles.arguments} />
        <p className="wraps small">{formatTargets(targets)}</p>
        <p className="mono small soft wraps">sha256 {actionDigest}</p>
      </details>
    </section>
  )
}

function countTargets(count: number): string {
  if (count === 0) return 'no target'
  return count === 1 ? 'the target' : `all ${count} targets`
}

function formatTargets(targets: Approval['targets']): string {
  return targets.map(({ kind, id }) => `${kind} ${inertText(id)}`).join(', ')
}

/** What the approval rests on: rows of the log, so that a person can check the reason against them. */
function EvidenceList({ approval }: { approval: ApprovalDetail }) {
  const { incidentId, evidence } = approval
  return (
    <ul className="evidence">
      {evidence.map((row) => (
        <li key={row.seq}>
          <Link href={`/incidents/${incidentId}#e-${row.seq}`}>row {row.seq}</Link> <EvidenceText row={row} />
        </li>
      ))}
      <li>
        <Link href={`/incidents/${incidentId}`}>The whole incident</Link>
      </li>
    </ul>
  )
}

function EvidenceText({ row: { what, tool, about, found, isSaid } }: { row: Evidence }) {
  if (what === 'proposed') return <>what the agent wrote when it proposed this</>
  if (what === 'alert' || isSaid) {
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

/** What this was asked in place of, and what was asked in place of this. */
function Replaced({ approval: { edited, arguments: asked, replaces, replacedBy } }: { approval: ApprovalDetail }) {
  if (!edited && !replaces && !replacedBy) return null
  return (
    <div className="said lamp stack tight" role="status">
      {edited && (
        <>
          <p>
            <strong>
              Withdrawn: <Inert text={edited.by} /> changed the arguments.
            </strong>{' '}
            The call is checked and requested again with these, and with their vote.
          </p>
          <Changes made={listChanges(asked, edited.arguments)} />
        </>
      )}
      {replacedBy ? (
        <p>
          <Link href={`/approvals/${replacedBy}`}>Go to the new approval</Link>
        </p>
      ) : (
        edited && (
          <p className="soft">The run takes it from here: the new approval is linked as soon as it is requested.</p>
        )
      )}
      {replaces && (
        <p>
          It was requested before: <Link href={`/approvals/${replaces}`}>the approval that this one replaces</Link>
        </p>
      )}
    </div>
  )
}

function Expiry({ approval }: { approval: Approval }) {
  if (approval.status === 'pending') return null
  return (
    <p className="soft">
      Requested {formatMoment(approval.requestedAt)}
      {approval.useBy && `, to be used by ${formatMoment(approval.useBy)}`}
    </p>
  )
}

function Decisions({ approval }: { approval: Approval }) {
  if (approval.decisions.length === 0) return null
  return (
    <ul className="stack tight">
      {approval.decisions.map(({ operator, decision, reason, via, at }) => (
        <li key={operator} className={`said ${decision === 'approve' ? 'good' : 'wrong'}`}>
          <strong>
            {decision === 'approve' ? 'Approved' : 'Denied'} by <Inert text={operator} />
          </strong>{' '}
          <span className="soft">
            {formatMoment(at)}, via {via}
          </span>
          {reason && (
            <p className="wraps">
              <Inert text={reason} />
            </p>
          )}
        </li>
      ))}
      <li>
        <Link href={`/incidents/${approval.incidentId}`}>Follow the incident</Link>
      </li>
    </ul>
  )
}
