import { Heading } from '../heading.tsx'

export function ConfigPage() {
  return <Heading title="Configuration" />
}
