import type { Approval, ApprovalDetail } from '../../domain/approval.ts'
import { type ToldRehearsal, toldRehearsal } from '../../domain/told-rehearsal.ts'
import { tellProofOfWrite } from '../../domain/told-verification.ts'
import { changes } from '../differences.ts'
import { Heading } from '../heading.tsx'
import { Exact, Inert, inertText } from '../inert.tsx'
import { ApprovalMark, RiskMark } from '../marks.tsx'
import { PlanOfProposal, StaysDownOf } from '../plan/plan.tsx'
import { Link } from '../router.tsx'
import { moment } from '../time.ts'
import { ConsequencesOf } from './consequences.tsx'
import { Decide } from './decide.tsx'
import { Changes } from './edit.tsx'
import { Evidence } from './evidence.tsx'

/** Everything a person needs in order to decide, in the order they ask for it; the decision comes last. */
export function ApprovalCard({ approval }: { approval: ApprovalDetail }) {
  const { tool, targets, dryRun, reversible } = approval
  const { proposalId } = dryRun.details
  const rehearsal = toldRehearsal(dryRun.details)
  const named = targets.filter(({ kind }) => kind !== 'proposal')
  const main = (named.length > 0 ? named : targets).slice(0, 3)
  return (
    <article className="card">
      <header className="stack tight">
        <p className="soft">
          <code>
            <Inert text={tool} />
          </code>
        </p>
        <Heading title={inertText(dryRun.summary)}>
          <Inert text={capital(dryRun.summary)} />
        </Heading>
        <p className="wraps">
          on {main.map(({ kind, id }) => `${kind} ${inertText(id)}`).join(', ') || 'no named target'}
          {targets.length > main.length && <span className="soft"> and {targets.length - main.length} more</span>}
        </p>
      </header>

      <p className="row">
        <RiskMark risk={approval.risk} />
        <span className={reversible ? '' : 'tone-critical strong'}>
          {reversible ? 'reversible' : 'cannot be undone'}
        </span>
        <ApprovalMark status={approval.status} />
        {approval.required > 1 && (
          <span>
            {approval.approvals} of {approval.required} people have approved
          </span>
        )}
      </p>

      <ConsequencesOf approval={approval} />

      {approval.status === 'pending' && <StaysDownOf details={dryRun.details} />}

      <Replaced approval={approval} />

      <section className="stack tight">
        <h2>Exact arguments</h2>
        <Exact value={approval.arguments} label="Exact arguments" />
        <details>
          <summary>
            {targets.length === 1 ? 'The target' : `All ${targets.length} targets`}, digest of the action
          </summary>
          <p className="wraps small">{targets.map(({ kind, id }) => `${kind} ${inertText(id)}`).join(', ')}</p>
          <p className="mono small soft wraps">sha256 {approval.actionDigest}</p>
        </details>
      </section>

      <section className="stack tight">
        <h2>Why</h2>
        <p className="wraps lines">
          <Inert text={approval.reason || 'The agent gave no reason.'} />
        </p>
        <Evidence approval={approval} />
      </section>

      <section className="stack tight">
        <h2>What will prove it</h2>
        <p className={`wraps ${dryRun.proof?.by === 'state' ? '' : 'said wrong'}`}>
          <Inert text={tellProofOfWrite(dryRun.proof)} />
        </p>
      </section>

      <section className="stack tight">
        <h2>Dry run</h2>
        <PreviewOf approval={approval} />
        {approval.status !== 'pending' && <StaysDownOf details={dryRun.details} />}
        {dryRun.possible ? (
          <>
            <p className="wraps">
              <Inert text={capital(dryRun.summary)} />
            </p>
            {rehearsal && <Rehearsal told={rehearsal} />}
            {typeof proposalId === 'string' && <PlanOfProposal id={proposalId} played />}
            {Object.keys(dryRun.details).length > 0 && (
              <details open={typeof proposalId !== 'string' && rehearsal === null}>
                <summary>Details as data</summary>
                <Exact value={dryRun.details} label="Details of the dry run" />
              </details>
            )}
          </>
        ) : (
          <>
            <p className="said wrong">There is none for this action: nobody knows beforehand what it will do.</p>
            {rehearsal && <Rehearsal told={rehearsal} />}
          </>
        )}
      </section>

      <Expiry approval={approval} />
      <Decisions approval={approval} />
      <Decide approval={approval} key={approval.id} />
    </article>
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
            The call is judged and asked again with these, and with their vote.
          </p>
          <Changes made={changes(asked, edited.arguments)} />
        </>
      )}
      {replacedBy ? (
        <p>
          <Link href={`/approvals/${replacedBy}`}>Go to the approval that was asked again</Link>
        </p>
      ) : (
        edited && <p className="soft">The run takes it from here: the new approval is linked as soon as it is asked.</p>
      )}
      {replaces && (
        <p>
          It was asked before: <Link href={`/approvals/${replaces}`}>the approval that this one replaces</Link>
        </p>
      )}
    </div>
  )
}

/** Which time the dry run speaks of: never a preview that reads as what happened. */
function PreviewOf({ approval: { status, requestedAt } }: { approval: Approval }) {
  const when = `made ${moment(requestedAt)}`
  if (status === 'consumed') return <p className="soft">The preview, {when}. The incident shows what was done.</p>
  if (status === 'pending' || status === 'approved')
    return <p className="soft">A preview, {when}: what would happen. Nothing is done yet.</p>
  return (
    <p className="soft">
      The preview, {when}: what would have happened. <strong>None of it was done.</strong>
    </p>
  )
}

function Expiry({ approval }: { approval: Approval }) {
  if (approval.status === 'pending') return null
  return (
    <p className="soft">
      Asked {moment(approval.requestedAt)}
      {approval.useBy && `, to be used by ${moment(approval.useBy)}`}
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
            {moment(at)}, via {via}
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

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** What was found out beforehand, line by line, and then what was not tried: neither may be taken for the other. */
export function Rehearsal({ told: { lines, untried } }: { told: ToldRehearsal }) {
  return (
    <>
      {lines.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so it must be reachable by keyboard
        <section className="exact" aria-label="What was found out beforehand" tabIndex={0}>
          <pre dir="ltr">
            <Inert text={lines.join('\n')} />
          </pre>
        </section>
      )}
      {untried.length > 0 && (
        <ul className="said wrong">
          {untried.map((sentence) => (
            <li className="wraps" key={sentence}>
              <Inert text={sentence} />
            </li>
          ))}
        </ul>
      )}
    </>
  )
}
