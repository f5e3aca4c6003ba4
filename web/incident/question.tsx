import type { ServedBrief } from '../../domain/brief.ts'
import { formatNumber, formatSpan } from '../../domain/format.ts'
import type { DetailedIncident, Surroundings } from '../../domain/incident-detail.ts'
import { doneWords } from '../../domain/status-words.ts'
import { PersonText, useDraft } from '../fields.tsx'
import { Inert } from '../inert.tsx'
import { Markdown } from '../markdown.tsx'
import { StatusMark } from '../marks.tsx'
import { Section } from '../page-frame.tsx'
import { formatMoment, useNow } from '../time.ts'
import { ActionDialog } from './endings.tsx'
import { RowLinks } from './row-link.tsx'
import { getRefusal } from './rows.ts'

/** Shows a person's question with its answer, without cause, alert or repair. */

export function AskedAt({ incident }: { incident: DetailedIncident }) {
  const now = useNow()
  return (
    <p className="glance row">
      <StatusMark status={incident.status} />
      <span>
        asked {formatMoment(incident.createdAt)}{' '}
        <span className="soft">({formatSpan(now - Date.parse(incident.createdAt))} ago)</span>
      </span>
    </p>
  )
}

/** Shows the answer with its rows, or that there is no answer yet. */
export function QuestionAnswer({ incident, brief }: { incident: DetailedIncident; brief: ServedBrief }) {
  const { cause, done, spent } = brief
  const { resolution, status } = incident
  return (
    <Section className="said stack tight" id="answer-title" title={status === 'resolved' ? 'Answer' : 'No answer yet'}>
      {status === 'resolved' && resolution !== null && (
        <div className="wraps">
          <Markdown text={resolution} /> <RowLinks rows={cause.rows} />
        </div>
      )}
      {status === 'escalated' && (
        <p className="wraps">
          The agent found no answer: <Inert text={cause.text} /> <RowLinks rows={cause.rows} />
        </p>
      )}
      {status === 'cancelled' && <p>The question was withdrawn.</p>}
      {done.map((each) => (
        <p key={`${each.outcome} ${each.rows.join()}`} className="wraps">
          <strong>{doneWords[each.outcome]}:</strong> <Inert text={each.text} /> <RowLinks rows={each.rows} />
        </p>
      ))}
      {spent.turns > 0 && (
        <p className="soft small">
          {spent.turns} {spent.turns === 1 ? 'turn' : 'turns'} · {formatNumber(spent.tokens)} tokens ·{' '}
          {formatSpan(spent.modelMs)} of model time
        </p>
      )}
    </Section>
  )
}

/** Shows the actions for a question: answer it directly, withdraw it, ask it again. */
export function QuestionActions({
  incident,
  surroundings,
}: {
  incident: DetailedIncident
  surroundings: Surroundings | null
}) {
  const [text, setText] = useDraft(`answer to ${incident.id}`)
  const refused = (action: 'resolve' | 'cancel' | 'investigate') => getRefusal(surroundings, action)
  return (
    <div className="row">
      <ActionDialog
        incident={incident}
        refused={refused('resolve')}
        button="Answer it yourself"
        path="resolve"
        title="Answer the question"
        body={() => ({ outcome: 'answered', resolution: text.trim() })}
      >
        <PersonText id="action-answer" label="The answer" value={text} onChange={setText} />
      </ActionDialog>
      <ActionDialog
        incident={incident}
        refused={refused('cancel')}
        button="Withdraw"
        path="cancel"
        title="Withdraw the question"
        body={() => ({ reason: 'The question was withdrawn' })}
      >
        <p>The agent stops working on the question.</p>
      </ActionDialog>
      <ActionDialog
        incident={incident}
        refused={refused('investigate')}
        button="Ask again"
        path="investigate"
        title="Ask the agent again"
      >
        <p>The agent starts again from the beginning.</p>
      </ActionDialog>
    </div>
  )
}
