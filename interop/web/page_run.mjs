// Runs: a sentence, its steps and its passages, in every direction.
//
//	node page_run.mjs CHROMIUM WORLD
import assert from 'node:assert/strict'
import { axe, desktop, follow, onPage, overflow, phone, scenarios, told, withBrowser } from './browser.mjs'

const { executablePath, world } = told()
const run = `${world.demo}/ui/runs/demo`
const names = async (page, selector, name) => (await page.locator(selector).evaluateAll((all, name) => all.map(e => e.dataset[name]), name)).sort()

await withBrowser(executablePath, browser => scenarios({
  'a sentence leads to its steps and passages, and back': () => onPage(browser, world, desktop, async page => {
    await page.goto(run)
    // What is wrong with the answer, and where it comes from, is visible at once.
    assert.match(await page.locator('.run-answer .trust').innerText(), /3 quotes found[^]*1 changed[^]*1 sentence without a source[^]*signed by/)
    assert.match(await page.locator('.run-answer .notice.bad').innerText(), /The source now says 1986, the answer 1968/)
    assert.match(await page.locator('#why .diff').innerText(), /1968\s*1986/)
    await page.locator('.run-answer a[data-choose]').first().click()
    assert.deepEqual([...new Set(await names(page, '.sentence.chosen', 'n'))], ['1'])
    assert.ok(await page.locator('.run-answer .prose .chip').count() >= 3, 'the answer has no chips')
    assert.deepEqual(await page.locator('.passage blockquote').allTextContents().then(all => all.length - new Set(all).size), 0, 'a passage stands there twice')
    assert.ok(await page.locator('.step .step-bar').count() >= 4)
    for (const step of await page.locator('.step').all()) {
      const named = await step.locator('.used-title').allTextContents()
      assert.equal(new Set(named).size, named.length, `a step names a source twice: ${named}`)
    }
    assert.match(await page.locator('#step-4 .step-label').textContent(), /Its conclusion is the answer/)
    const steps = await names(page, '.step.related', 'step'), passages = await names(page, '.passage.related', 'passage')
    assert.ok(steps.length > 0 && passages.length > 0)
    assert.match(await page.textContent('#why'), /41 nests/)
    assert.ok(await page.locator('#why blockquote mark').count() > 0)
    assert.match(page.url(), /sentence=1/)
    await page.locator('.run-answer .prose .chip').nth(1).click() // selects, and opens nothing else
    assert.equal(await page.locator('#sources').evaluate(e => e.open), false)
    await page.locator('.run-answer a[data-choose]').first().click()
    assert.deepEqual(await axe(page), [])
    if (world.images) await page.screenshot({ path: `${world.images}/run.png` })
    const chosen = await page.locator('.sentence.chosen, .step.related, .passage.related').count()
    await page.reload()
    assert.equal(await page.locator('.sentence.chosen, .step.related, .passage.related').count(), chosen, 'a reload chooses something else')
    await page.locator(`#passage-${passages[0]}`).evaluate(e => { for (let d = e.closest('details'); d; d = d.parentElement.closest('details')) d.open = true })
    await page.locator(`#passage-${passages[0]} a[data-choose]`).click()
    assert.ok((await names(page, '.sentence.related', 'n')).includes('1'))
    const beside = await page.locator('#why').evaluate(e => { const r = e.getBoundingClientRect(); return r.top >= 0 && r.bottom <= innerHeight })
    assert.ok(beside, 'what rests on a passage is not beside it')
    assert.equal(await page.locator('#why .rests').first().isVisible(), false, 'the passage is told twice')
    await page.locator(`#step-${steps[0]} > details`).evaluate(e => { e.open = true })
    await page.locator(`#step-${steps[0]} a[data-choose="step"]`).first().click()
    assert.ok((await names(page, '.sentence.related', 'n')).includes('1'))
  }),
  'a run that goes on says so, and is of use meanwhile': () => onPage(browser, world, desktop, async page => {
    const post = async (path, data) => {
      const res = await page.request.post(world.base + path, { data })
      assert.ok(res.ok(), `${path}: ${res.status()} ${await res.text()}`)
      return res.json()
    }
    const step = n => ({
      step_number: n, tool: 'search', question: `herons ${n}`,
      retrieved_documents: [{ document_id: `d${n}`, title: `Herons, part ${n}`, score: 0.9, content: `Part ${n}: herons build nests of sticks.` }],
    })
    const { id } = await post('/v1/runs', { agent: 'birder', original_question: 'Do herons build?', final_answer: 'Herons build nests of sticks.' })
    await post(`/v1/runs/${id}/steps`, step(1)) // if created with its steps, the run would have ended
    const watching = page.waitForResponse(r => r.url().includes(`/ui/runs/${id}/live`)) // from now on additions are reported
    await page.goto(`${world.base}/ui/runs/${id}`)
    assert.equal((await watching).status(), 200)
    assert.match(await page.innerText('.run-open'), /has not finished/)
    await page.locator('.step summary').first().click()
    const tie = page.locator('.step a[data-choose="step"]').first()
    await tie.click()
    assert.deepEqual(await names(page, '.step.chosen', 'step'), ['1'])
    assert.deepEqual([await tie.getAttribute('role'), await tie.getAttribute('aria-pressed')], ['button', 'true'])
    assert.deepEqual(await axe(page), [])
    await page.waitForFunction(() => document.querySelector('.run-open a').offsetParent === null) // no reload is needed
    await post(`/v1/runs/${id}/steps`, step(2))
    await page.waitForSelector('#step-2')
    assert.deepEqual(await names(page, '.step.chosen', 'step'), ['1'], 'what was chosen is not any more')
    assert.equal(await page.locator('#step-1 > details').evaluate(e => e.open), true, 'what was opened is shut')
    assert.equal(await page.evaluate(() => document.activeElement.dataset.choose + document.activeElement.dataset.n), 'step1', 'the focus is lost')
    await page.locator('#step-2 summary').first().click() // a step that arrived later works like the others
    await page.locator('#step-2 a[data-choose="step"]').first().click()
    assert.deepEqual(await names(page, '.step.chosen', 'step'), ['2'])
    await page.evaluate(() => getSelection().selectAllChildren(document.querySelector('.step .step-head, .step summary')))
    await post(`/v1/runs/${id}/steps`, step(3))
    await page.waitForSelector('.run-open.good') // a selection is not disturbed
    assert.match(await page.innerText('.run-open'), /Something was added to this run. Reload/)
    await page.locator('.run-open a').click()
    await page.waitForSelector('#step-3')
    await page.waitForFunction(() => document.querySelector('.run-open a').offsetParent === null)
    await post(`/v1/runs/${id}/finish`, {})
    await page.waitForSelector('.run-open', { state: 'detached' })
  }),
  'a run of captured calls alone shows what is added': () => onPage(browser, world, desktop, async page => {
    const call = () => page.request.post(`${world.demo}/openai/v1/responses`, { headers: { 'Ibid-Run': 'calls-alone', 'Ibid-Publish': 'no' }, data: { model: 'gpt-5', input: 'How many herons nest at Lake Tonbo?' } })
    await call()
    const stored = async () => (await (await page.request.get(`${world.demo}/v1/runs`)).json()).runs.some(r => r.id === 'calls-alone')
    while (!await stored()) await page.waitForTimeout(50) // a page waits only half a second for the store
    const watching = page.waitForResponse(r => r.url().includes('/ui/runs/calls-alone/live'))
    await page.goto(`${world.demo}/ui/runs/calls-alone`)
    assert.equal((await watching).status(), 200)
    assert.equal(await page.locator('.run-open').isVisible(), false)
    await call()
    await page.waitForSelector('#step-2')
    assert.equal(await page.locator('.run-open').isVisible(), false)
    assert.deepEqual(await axe(page), [])
  }),
  'by keyboard, as far as the drawing': () => onPage(browser, world, desktop, async page => {
    await page.goto(run)
    await page.locator('.run-answer a[data-choose]').first().focus()
    await page.keyboard.press('Space')
    assert.ok(await page.locator('.sentence.chosen').count() >= 1)
    assert.equal(await page.locator('.run-answer a[data-choose]').first().getAttribute('aria-pressed'), 'true')
    await page.keyboard.press('Space')
    assert.equal(await page.locator('.sentence.chosen').count(), 0)
    await page.locator('.sentence').first().click()
    await page.keyboard.press('Escape') // the focus is outside the run
    assert.equal(await page.locator('.sentence.chosen').count(), 0)
    await page.locator('.drawing > summary').press('Enter')
    const seen = []
    for (let i = 0; i < 40 && seen.length < 4; i++) {
      await page.keyboard.press('Tab')
      const node = await page.evaluate(() => document.activeElement.closest('svg a.node')?.dataset.node)
      if (node) seen.push(node)
    }
    assert.deepEqual(seen, ['1', '2', '3', '4'])
    const ring = await page.evaluate(() => { const s = getComputedStyle(document.activeElement), r = getComputedStyle(document.activeElement.querySelector('rect')); return [s.outlineStyle, r.strokeWidth, r.outlineStyle] })
    assert.ok(ring[0] !== 'none' || parseFloat(ring[1]) > 1 || ring[2] !== 'none', `no ring: ${ring}`)
    await page.keyboard.press('Enter')
    await page.waitForFunction(() => location.hash.includes('step-4') || location.search.includes('step=4'))
  }),
  'without scripts the same links show the same': () => onPage(browser, world, { ...desktop, javaScriptEnabled: false }, async page => {
    await page.goto(run)
    await follow(page, page.locator('.run-answer a[data-choose]').first())
    assert.ok(await page.locator('.sentence.chosen').count() >= 1)
    assert.ok(await page.locator('.step.related > details[open]').count() > 0)
    assert.match(await page.locator('#why').innerText(), /41 nests/)
  }),
  'on a phone': () => onPage(browser, world, phone, async page => {
    await page.goto(run)
    assert.deepEqual(await overflow(page), [])
    await page.locator('.run-answer a[data-choose]').nth(1).tap()
    assert.ok(await page.locator('.sentence.chosen').count() >= 1)
    assert.deepEqual(await overflow(page), [])
    assert.deepEqual(await axe(page), [])
    const sheet = await page.locator('#why').boundingBox()
    assert.ok(sheet.y > 200 && Math.abs(sheet.y + sheet.height - phone.viewport.height) < 2, `no sheet: ${JSON.stringify(sheet)}`)
    await page.locator('.why-close').tap()
    assert.equal(await page.locator('.sentence.chosen').count(), 0)
    assert.equal(await page.evaluate(() => getComputedStyle(document.getElementById('why')).position), 'static')
    await page.locator('.run-answer a[data-choose]').nth(1).tap()
    await page.locator('#why .rest-name a:visible').first().tap() // a link out of the sheet closes it and frees its space
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).paddingBlockEnd), '0px')
    await page.locator('.run-answer a[data-choose]').nth(1).tap() // one tap opens it again
    assert.equal(await page.evaluate(() => getComputedStyle(document.getElementById('why')).position), 'fixed')
    await page.locator('.why-close').tap()
    await page.locator('.sentence.bare').first().tap() // a sentence without a source opens a sheet that closes, too
    assert.match(await page.locator('#why').innerText(), /no known source/)
    await page.locator('.why-close').tap()
    assert.equal(await page.locator('.sentence.chosen').count(), 0)
    assert.doesNotMatch(page.url(), /sentence=/)
  }),
  'a step, a passage and a source are rated': () => onPage(browser, world, desktop, async page => {
    await page.goto(run)
    await page.locator('.step summary').first().click()
    await page.locator('.step-numbers > summary').first().click()
    const rate = page.locator('.rate-source').first()
    await rate.locator('summary').click()
    await follow(page, rate.locator('button', { hasText: 'partly' }))
    assert.match(await page.textContent('main'), /rated/)
  }),
  'exports': () => onPage(browser, world, desktop, async page => {
    await page.goto(run)
    for (const link of await page.locator('.exports a').all()) {
      const res = await page.request.get(new URL(await link.getAttribute('href'), run).href)
      assert.equal(res.status(), 200)
      JSON.parse(await res.text())
    }
  }),
  'what changed is said, and what was published is verified': () => onPage(browser, world, desktop, async page => {
    await page.goto(`${world.demo}/ui/incidents`)
    assert.match(await page.textContent('main'), /The source now says “1986” instead of “1968”/)
    assert.equal(await page.locator('main .list > li').count(), 1, 'one change is told more than once')
    await follow(page, page.locator('main .list a').first())
    assert.deepEqual(await axe(page), [])
    await page.goto(`${world.demo}/ui/conversations/herons`)
    const standings = await page.locator('.sources .standing').allTextContents()
    assert.ok(standings.some(b => /quote found/.test(b)) && standings.some(b => /changed/.test(b)), `standings: ${standings}`)
    assert.equal(await page.locator('.sources :is(.badge, .standing):not(:has(svg))').count(), 0, 'a badge without an icon')
    const first = await page.locator('article.answer').first().getAttribute('data-answer')
    assert.match(await page.locator('.turn .trust').first().innerText(), /3 quotes found[^]*1 changed[^]*1 sentence without a source[^]*signed by this server/)
    for (const [n, badge, ...quotes] of [
      [1, 'quote found', 'Volunteers counted 41 nests in the alders of Lake Tonbo on 12 April.', 'At low water the birds fish on the northern shore, where the ground is flat.'],
      [2, 'changed', 'The colony began with a single pair in 1968, a year after the mill closed.'],
    ]) { // the panel marks exactly the quoted text, in the copy that contains it
      await page.goto(`${world.demo}/ui/answers/${first}/sources/${n}`)
      assert.deepEqual(await page.locator('.excerpt mark').allTextContents(), quotes)
      assert.equal(await page.locator('.panel-quote .badge').first().innerText(), badge)
      assert.ok((await page.locator('.excerpt blockquote').first().textContent()).length > 2 * quotes[0].length, 'there is nothing around the quote')
    }
    assert.match(await page.locator('main').innerText(), /The latest copy of the source does not have it/)
    assert.deepEqual(await page.locator('.compared mark').allInnerTexts(), ['1968', '1986'])
    assert.deepEqual(await axe(page), [])
    await page.goto(`${world.demo}/ui/verify`)
    await page.fill('#v-url', `${world.demo}/v1/answers/${first}`)
    await follow(page, page.locator('.verifying button.first'))
    // While sources are compared, the page says how far that is.
    await page.waitForFunction(() => document.querySelector('.report-lines'), undefined, { timeout: 30_000 })
    // The three findings come first, followed by what was quoted and what the source says now.
    assert.match(await page.innerText('h1'), /How many herons nest/)
    assert.match(await page.innerText('.verdict'), /1 of 4 quotes has changed/)
    assert.match(await page.locator('.report-lines').innerText(), /Sources[^]*3 quotes found, 1 changed[^]*Sentences[^]*2 unjudged, 1 changed[^]*Signature[^]*signed by this server, unchanged/)
    assert.deepEqual(await page.locator('.claims').first().locator('.sides mark').allInnerTexts(), ['1968', '1986'])
    // Everything promised is there, and a source that has changed is reported.
    for (const words of [/Level 3 was seen, as promised/, /its key is trusted here/, /quote found/, /changed/]) {
      assert.match(await page.locator('main').innerText(), words)
    }
    assert.deepEqual(await axe(page), [])
    assert.deepEqual(await overflow(page), [])
    await page.evaluate(() => scrollTo(0, 0))
    if (world.images) await page.screenshot({ path: `${world.images}/verify.png` })
    // The demo's examples are one click away.
    await page.goto(`${world.demo}/ui/verify`)
    await follow(page, page.locator('.example').first())
    assert.match(await page.innerText('.verdict'), /All 4 quotes are still in their sources/)
    assert.deepEqual(await axe(page), [])
  }),
}))
