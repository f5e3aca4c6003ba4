import type { Incident } from '../../domain/incident.ts'
import type { PersonAction, Surroundings } from '../../domain/incident-detail.ts'
import { useSession } from '../session.ts'
import { ActionDialog, type Props } from './action-dialog.tsx'
import { Cancel, Escalate, Expect, Resolve } from './endings.tsx'
import { getRefusal } from './query.ts'

/** What a person can do about an incident. What cannot be done now is shown with its reason, not hidden. */
export function Actions({ incident, surroundings }: { incident: Incident; surroundings: Surroundings | null }) {
  const { data: session } = useSession()
  const refused = (action: PersonAction) => getRefusal(surroundings, action)
  const isMine = incident.owner !== null && incident.owner.name === session?.name
  return (
    <div className="row">
      {!isMine && <Take incident={incident} refused={refused('take')} />}
      {incident.owner && (
        <ActionDialog
          incident={incident}
          refused={refused('give_back')}
          button="Give back"
          path="give-back"
          title="Give this incident back"
        >
          <p>It stays escalated. What fires on is in the digest, and what begins again is investigated.</p>
        </ActionDialog>
      )}
      <Resolve incident={incident} refused={refused('resolve')} />
      <Escalate incident={incident} refused={refused('escalate')} />
      <Cancel incident={incident} refused={refused('cancel')} />
      <Expect incident={incident} hasAlert={(surroundings?.alerts.length ?? 0) > 0} refused={refused('expected')} />
      <ActionDialog
        incident={incident}
        refused={refused('investigate')}
        button={incident.status === 'open' ? 'Investigate now' : 'Investigate again'}
        path="investigate"
        title="Put it before the agent"
      >
        <p>An attempt begins at the next tick of the queue. You cannot approve its critical actions yourself.</p>
      </ActionDialog>
    </div>
  )
}

function Take(props: Props) {
  return (
    <ActionDialog
      {...props}
      button="Take"
      path="take"
      title={props.incident.owner ? 'Take it over' : 'Take this incident'}
    >
      <p>
        A run ends first, and a write under way is looked at. While you have it the agent makes no attempt and nobody is
        reminded; you hear what its alert does. Half a day without an act of yours gives it back.
      </p>
    </ActionDialog>
  )
}
