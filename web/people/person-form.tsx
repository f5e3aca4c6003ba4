import { useState } from 'react'
import type { PersonRole } from '../../domain/operator.ts'
import { type Risk, risks } from '../../domain/tool.ts'
import { ask } from '../api.ts'
import { Confirm } from '../confirm.tsx'
import { inertText } from '../inert.tsx'
import { queryClient } from '../query-client.ts'
import { rolesOfPeople } from '../roles.ts'
import type { Person } from './page.tsx'

/** Makes a person, or changes what one may. The server takes the change whole, with its reason. */
export function PersonForm({ button, person, isSelf }: { button: string; person: Person | null; isSelf: boolean }) {
  const [name, setName] = useState(person?.name ?? '')
  const [role, setRole] = useState<PersonRole>(person?.role ?? 'approver')
  const [maxRisk, setMaxRisk] = useState<Risk>(person?.maxRisk ?? 'high')
  const [types, setTypes] = useState(person?.incidentTypes?.join(' ') ?? '')
  const [slack, setSlack] = useState(person?.slackUserId ?? '')
  const [disabled, setDisabled] = useState(Boolean(person?.disabledAt))
  const [reason, setReason] = useState('')
  const id = `person-${person?.id ?? 'new'}`

  const save = async () => {
    const incidentTypes = types.split(/[\s,]+/).filter(Boolean)
    await ask(`/operators/${encodeURIComponent(name.trim())}`, {
      method: 'PUT',
      body: {
        role,
        maxRisk,
        incidentTypes: incidentTypes.length > 0 ? incidentTypes : null,
        disabled,
        reason,
        slackUserId: slack.trim() || null,
      },
    })
    setReason('')
    await queryClient.invalidateQueries({ queryKey: ['people'] })
  }
  return (
    <Confirm
      button={button}
      label={person ? inertText(person.name) : ''}
      title={person ? `What ${inertText(person.name)} may` : 'Add a person'}
      run={save}
    >
      {!person && (
        <>
          <label htmlFor={`${id}-name`}>Name, one word, as rows will show it</label>
          <input
            id={`${id}-name`}
            type="text"
            required
            pattern="[A-Za-z0-9][\w.@+\-]{0,63}"
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        </>
      )}
      <label className="row">
        Role
        <select
          value={role}
          disabled={Boolean(person?.issuer) || isSelf}
          onChange={(event) => setRole(event.target.value as PersonRole)}
        >
          {rolesOfPeople.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
        {person?.issuer && <span className="small soft">comes from the groups at the provider</span>}
        {isSelf && <span className="small soft">another admin changes yours</span>}
      </label>
      <label className="row">
        Decides about risks up to
        <select value={maxRisk} onChange={(event) => setMaxRisk(event.target.value as Risk)}>
          {risks.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </label>
      <label htmlFor={`${id}-types`}>In incidents of these types (empty: all)</label>
      <input
        id={`${id}-types`}
        type="text"
        className="mono"
        placeholder="disk_pressure replication_lag"
        value={types}
        onChange={(event) => setTypes(event.target.value)}
      />
      <label htmlFor={`${id}-slack`}>Member id at Slack (empty: may not decide there)</label>
      <input
        id={`${id}-slack`}
        type="text"
        className="mono"
        placeholder="U012AB3CD"
        value={slack}
        onChange={(event) => setSlack(event.target.value)}
      />
      <label className="choice">
        <input
          type="checkbox"
          checked={disabled}
          disabled={isSelf}
          onChange={(event) => setDisabled(event.target.checked)}
        />
        Disabled: comes in nowhere, with any token or browser
      </label>
      <label htmlFor={`${id}-reason`}>Why, for the audit</label>
      <input
        id={`${id}-reason`}
        type="text"
        required
        minLength={3}
        maxLength={500}
        value={reason}
        onChange={(event) => setReason(event.target.value)}
      />
    </Confirm>
  )
}
