import type { Approval, ApprovalDetail, Evidence } from '../../domain/approval.ts'
import { type CardSection, cardSections, newestLookOf } from '../../domain/card-sections.ts'
import { capitalize } from '../../domain/format.ts'
import {
  formatAlsoAsked,
  formatReversible,
  formatUnheard,
  isReadExactly,
  partTitles,
} from '../../domain/format-approval.ts'
import { hostsToSay } from '../../domain/format-death.ts'
import { readStaysDown } from '../../domain/format-plan.ts'
import type { DetailedIncident } from '../../domain/incident-detail.ts'
import { useAsk } from '../api.ts'
import { CopyCommand, CopyId } from '../copy.tsx'
import { listChanges } from '../differences.ts'
import { Hypotheses } from '../incident/page.tsx'
import { RowDrawer } from '../incident/row-drawer.tsx'
import { RowLink } from '../incident/row-link.tsx'
import { Exact, Inert, inertText, TextLink } from '../inert.tsx'
import { ApprovalMark, RiskMark, Sign, Warning } from '../marks.tsx'
import { Heading, Loading, QueryState, Section } from '../page-frame.tsx'
import { StaysDown } from '../plan/plan.tsx'
import { Link } from '../router.tsx'
import { formatMoment, formatTimeOfDay } from '../time.ts'
import { CallRunSteps, NextCalls, Together, useCard, useRunNews } from './calls.tsx'
import { DecisionProblem, Foot, Over, useDeciding, useIsOpen, Ways } from './decide.tsx'
import { Changes, DryRun } from './edit.tsx'
import { useDecision } from './query.ts'

export function ApprovalPage({ id }: { id: string }) {
  const approval = useAsk<ApprovalDetail>(['approval', id], `/approvals/${encodeURIComponent(id)}`)
  useRunNews(id, approval.data?.incidentId)
  if (approval.isPending) return <Loading what="the approval" />
  return (
    <>
      {!approval.data && <Heading title="Approval" of={approvals} />}
      <QueryState query={approval} what="the approval" />
      {approval.data && <ApprovalCard approval={approval.data} key={id} />}
    </>
  )
}

const approvals = { href: '/approvals', title: 'Approvals' }

/**
 * Shows everything that a decision needs. Left: reasons for and against, in the order of the
 * sections, the worst first. Right: the action. Below, always visible: the decision.
 */
function ApprovalCard({ approval }: { approval: ApprovalDetail }) {
  const card = useCard(approval)
  const decision = useDecision(approval.id)
  const deciding = useDeciding(approval, card, decision)
  const incident = useIncidentOf(approval)
  return (
    <>
      <article className="card">
        <CardHeader approval={approval} incident={incident} />
        <div className="why">
          {!deciding && decision.error && <DecisionProblem text={decision.error.message} />}
          {approval.run ? <CallRunSteps run={approval.run} /> : <Over approval={approval} />}
          <Decisions approval={approval} />
          <Replaced approval={approval} />
          {approval.unheardAt !== null && <Warning text={formatUnheard(formatMoment(approval.unheardAt))} />}
          <Reasons approval={approval} />
          <SameByCommand approval={approval} />
        </div>
        <div className="what">
          <Together approval={approval} card={card} isLocked={decision.isPending} />
          <DryRun approval={approval} />
          <ExactArguments approval={approval} />
          <NextCalls next={approval.next} />
          {deciding && <Ways deciding={deciding} />}
        </div>
        {deciding && <Foot deciding={deciding} incident={incident} />}
      </article>
      {incident && (
        <RowDrawer
          incidentId={incident.id}
          events={[]}
          quotes={approval.hypotheses.flatMap(({ supports, refutes }) => [...supports, ...refutes])}
          last={incident.events}
          beganMs={Date.parse(incident.createdAt)}
        />
      )}
    </>
  )
}

/**
 * Reads the incident of an approval. The card shows the incident's title and owner if the incident
 * can be read.
 */
function useIncidentOf({ incidentId }: Approval): DetailedIncident | null {
  return useAsk<DetailedIncident>(['incident', incidentId], `/incidents/${encodeURIComponent(incidentId)}`).data ?? null
}

type HeaderProps = { approval: ApprovalDetail; incident: DetailedIncident | null }

/** Shows the request, its risk and status, its incident, when it was made and by whom. */
function CardHeader({ approval, incident }: HeaderProps) {
  const { dryRun, risk, reversible, status, required, incidentId, requestedAt, useBy, askedBy } = approval
  return (
    <header className="head stack tight">
      <Heading title={capitalize(inertText(dryRun.summary))} of={approvals}>
        <Inert text={capitalize(dryRun.summary)} />
      </Heading>
      <p className="state row">
        <RiskMark risk={risk} />
        <span className={reversible ? '' : 'strong'}>{formatReversible(reversible)}</span>
        <ApprovalMark status={status} />
        {required > 1 && (
          <span>
            {approval.approvals} of {required} people have approved
          </span>
        )}
        {incident && (
          <span className="for">
            for <TextLink href={`/incidents/${incidentId}`} text={incident.title} />
          </span>
        )}
        {approval.together.length > 0 && <span>{formatAlsoAsked(approval.together.length)}</span>}
        <span className="soft">
          asked {formatMoment(requestedAt)} by <Inert text={askedBy ?? 'the agent'} />
          {useBy && `, must run before ${formatMoment(useBy)}`}
        </span>
      </p>
    </header>
  )
}

/** Shows the sections of the card, with rows of the reason and a picture of the VMs. */
function Reasons({ approval }: { approval: ApprovalDetail }) {
  const isOpen = useIsOpen(approval)
  return cardSections(approval, {
    ...{ isOpen, moment: formatMoment, about: approval.about, lookedAt: newestLookOf(approval.evidence) },
    ...{ maxNamed: 0, deaths: approval.deaths },
  }).map((section) => (
    <Section
      key={section.name}
      title={section.title}
      className={section.warns ? `${section.name} warns` : section.name}
    >
      <Sentences {...section} />
      {section.name === 'against' && <StaysDown {...readStaysDown(approval.dryRun.details)} />}
      {section.name === 'reason' && (
        <>
          {approval.hypotheses.length > 0 && <Hypotheses causes={approval.hypotheses} />}
          <EvidenceList approval={approval} />
        </>
      )}
    </Section>
  ))
}

/**
 * Shows the sentences of a section. A warning has a sign, except in the cost, which is already a
 * box.
 */
function Sentences({ name, sentences, warns }: CardSection) {
  return sentences.map((sentence) =>
    warns && name !== 'cost' ? (
      <Warning key={sentence} text={sentence} />
    ) : (
      <Inert key={sentence} as="p" className="lines" text={sentence} />
    ),
  )
}

/** Shows the id of the approval, and the equivalent command. */
function SameByCommand({ approval: { id, status, deaths } }: { approval: ApprovalDetail }) {
  const off = hostsToSay(deaths).map((host) => ` --host-is-off ${host}`)
  const commands =
    status === 'pending'
      ? [`nightshift approvals approve ${id}${off.join('')}`, `nightshift approvals deny ${id} --reason 'why'`]
      : [`nightshift approvals show ${id}`]
  return (
    <details>
      <summary>Id of this approval, and how to decide in a terminal</summary>
      <CopyId id={id} label="the id of the approval" />
      {commands.map((command) => (
        <div key={command}>
          <CopyCommand command={command} label={command} />
        </div>
      ))}
    </details>
  )
}

/** Shows the arguments, open by default if they have to be read word by word, such as a command. */
function ExactArguments({ approval }: { approval: Approval }) {
  const { arguments: args, targets, actionDigest, tool } = approval
  return (
    <Section title={partTitles.arguments}>
      <details open={isReadExactly(approval)}>
        <summary>
          <Inert text={`${tool}: ${Object.keys(args).join(', ') || 'none'}`} />; {countTargets(targets.length)}, the
          action's digest
        </summary>
        <Exact value={args} label={partTitles.arguments} />
        <p className="wraps">{formatTargets(targets)}</p>
        <p className="mono soft wraps">sha256 {actionDigest}</p>
      </details>
    </Section>
  )
}

function countTargets(count: number): string {
  if (count === 0) return 'no target'
  return count === 1 ? 'the target' : `all ${count} targets`
}

function formatTargets(targets: Approval['targets']): string {
  return targets.map(({ kind, id }) => `${kind} ${inertText(id)}`).join(', ')
}

/** Lists the evidence of the approval: rows of the log with which the reason can be checked. */
function EvidenceList({ approval }: { approval: ApprovalDetail }) {
  const { incidentId, evidence } = approval
  return (
    <ul className="stack tight evidence">
      {evidence.map((row) => (
        <li key={row.seq}>
          <RowLink className="chip" seq={row.seq}>
            row {row.seq}
          </RowLink>{' '}
          <EvidenceText row={row} /> {row.at && <span className="soft small nowrap">{formatTimeOfDay(row.at)}</span>}
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
  if (what === 'alert' || isSaid) return <Inert text={found} />
  return (
    <>
      <Inert text={tool ?? ''} /> about <Inert text={about.map(({ id }) => id).join(', ')} />{' '}
      <Inert className="soft" text={found} />
    </>
  )
}

/** Shows the request that this request replaced, and the request that replaced this request. */
function Replaced({ approval: { edited, arguments: asked, replaces, replacedBy } }: { approval: ApprovalDetail }) {
  if (!edited && !replaces && !replacedBy) return null
  return (
    <section role="status">
      {edited && (
        <>
          <p>
            <strong>
              Withdrawn: <Inert text={edited.by} /> changed the arguments.
            </strong>{' '}
            The changed call is checked and requested again. The vote of this person counts for the changed call.
          </p>
          <Changes made={listChanges(asked, edited.arguments)} />
        </>
      )}
      {replacedBy ? (
        <p>
          <Link href={`/approvals/${replacedBy}`}>Go to the new approval</Link>
        </p>
      ) : (
        edited && <p className="soft">The link to the new approval appears here once the run has requested it.</p>
      )}
      {replaces && (
        <p>
          This approval replaces <Link href={`/approvals/${replaces}`}>an earlier approval</Link>.
        </p>
      )}
    </section>
  )
}

/** Lists the decisions: by whom, when, and through which channel. */
function Decisions({ approval }: { approval: Approval }) {
  if (approval.decisions.length === 0) return null
  return (
    <section>
      <ul>
        {approval.decisions.map(({ operator, decision, reason, via, at }) => (
          <li key={operator}>
            <span className={decision === 'approve' ? 'tone-proved' : ''}>
              <Sign shape={decision === 'approve' ? 'check' : 'cross'} />
            </span>{' '}
            <strong>
              {decision === 'approve' ? 'Approved' : 'Denied'} by <Inert text={operator} />
            </strong>{' '}
            <span className="soft">
              {formatMoment(at)}, via {via}
            </span>
            {reason && <Inert as="p" text={reason} />}
          </li>
        ))}
      </ul>
      <p>
        <Link href={`/incidents/${approval.incidentId}`}>Follow the incident</Link>
      </p>
    </section>
  )
}
