import { useState } from 'react'
import type { PersonRole } from '../../domain/operator.ts'
import { type Risk, risks } from '../../domain/tool.ts'
import { ask } from '../api.ts'
import { Confirm } from '../confirm.tsx'
import { ReasonField } from '../fields.tsx'
import { inertText } from '../inert.tsx'
import { queryClient } from '../query-client.ts'
import { rolesOfPeople } from '../session.ts'
import type { Person } from './people.tsx'

type Draft = ReturnType<typeof draftOf>

function draftOf(person: Person | null) {
  return {
    name: person?.name ?? '',
    role: person?.role ?? ('approver' as PersonRole),
    maxRisk: person?.maxRisk ?? ('high' as Risk),
    // No type at all and every type are as far apart as can be: neither is an empty field.
    allTypes: !person?.incidentTypes,
    types: person?.incidentTypes?.join(' ') ?? '',
    slack: person?.slackUserId ?? '',
    disabled: Boolean(person?.disabledAt),
    reason: '',
  }
}

/** Makes a person, or changes what one may. The server takes the change whole, with its reason. */
export function PersonForm({ button, person, isSelf }: { button: string; person: Person | null; isSelf: boolean }) {
  const [draft, setDraft] = useState(() => draftOf(person))
  const change = (part: Partial<Draft>) => setDraft({ ...draft, ...part })
  const { name, role, maxRisk, allTypes, types, slack, disabled, reason } = draft
  const id = `person-${person?.id ?? 'new'}`

  const save = async () => {
    await ask(`/operators/${encodeURIComponent(name.trim())}`, {
      method: 'PUT',
      // A name that is taken would change the person who has it.
      ifNoneMatch: person ? undefined : '*',
      body: {
        role,
        maxRisk,
        incidentTypes: allTypes ? null : types.split(/[\s,]+/).filter(Boolean),
        disabled,
        reason,
        slackUserId: slack.trim() || null,
      },
    })
    await queryClient.invalidateQueries({ queryKey: ['people'] })
  }
  return (
    <Confirm
      button={button}
      label={person ? inertText(person.name) : ''}
      title={person ? `What ${inertText(person.name)} may` : 'Add a person'}
      // From what the person may now, not from what was typed and left.
      onOpen={() => setDraft(draftOf(person))}
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
            onChange={(event) => change({ name: event.target.value })}
          />
        </>
      )}
      <label className="row">
        Role
        <select
          value={role}
          disabled={Boolean(person?.issuer) || isSelf}
          onChange={(event) => change({ role: event.target.value as PersonRole })}
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
        <select value={maxRisk} onChange={(event) => change({ maxRisk: event.target.value as Risk })}>
          {risks.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </label>
      <label className="choice">
        <input type="checkbox" checked={allTypes} onChange={(event) => change({ allTypes: event.target.checked })} />
        In incidents of all types
      </label>
      <label htmlFor={`${id}-types`}>Else in incidents of these (empty: in none)</label>
      <input
        id={`${id}-types`}
        type="text"
        className="mono"
        placeholder="disk_pressure replication_lag"
        disabled={allTypes}
        value={types}
        onChange={(event) => change({ types: event.target.value })}
      />
      <label htmlFor={`${id}-slack`}>Member id at Slack (empty: may not decide there)</label>
      <input
        id={`${id}-slack`}
        type="text"
        className="mono"
        placeholder="U012AB3CD"
        value={slack}
        onChange={(event) => change({ slack: event.target.value })}
      />
      <label className="choice">
        <input
          type="checkbox"
          checked={disabled}
          disabled={isSelf}
          onChange={(event) => change({ disabled: event.target.checked })}
        />
        Disabled: comes in nowhere, with any token or browser
      </label>
      <ReasonField
        id={`${id}-reason`}
        label="Why, for the audit"
        value={reason}
        onChange={(next) => change({ reason: next })}
      />
    </Confirm>
  )
}
