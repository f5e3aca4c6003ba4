import { Heading } from '../heading.tsx'

export function HealthPage() {
  return <Heading title="Health" />
}
