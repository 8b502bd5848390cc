// <ibid-cite> on a third party's page, which trusts only the gateway's script.
//
//	node page_element.mjs CHROMIUM WORLD
import assert from 'node:assert/strict'
import { axe, desktop, onPage, overflow, phone, scenarios, told, withBrowser } from './browser.mjs'

const { executablePath, world } = told()
const card = 'ibid-card:popover-open'

await withBrowser(executablePath, browser => scenarios({
  'a card on a foreign page': () => onPage(browser, world, desktop, async page => {
    await page.goto(`${world.foreign}/`)
    await page.waitForFunction(() => customElements.get('ibid-cite'))
    for (const [n, words] of [[0, /Volunteers counted 41 nests/], [1, /The lake and its birds/]]) {
      await page.locator('ibid-cite').nth(n).hover()
      await page.waitForFunction(([s, words]) => new RegExp(words).test(document.querySelector(s)?.shadowRoot.textContent), [card, words.source])
    }
    await page.locator('ibid-cite').first().hover()
    await page.waitForFunction(s => /Volunteers/.test(document.querySelector(s)?.shadowRoot.textContent), card)
    const open = page.locator(`${card} a[part=open]`)
    assert.match(await open.getAttribute('href'), /^https:\/\/birds\.example\/tonbo\/census#:~:text=Volunteers/)
    assert.deepEqual(await axe(page), [])
    await page.mouse.move(600, 780)
    await page.waitForSelector(card, { state: 'detached' })
    await page.locator('ibid-cite').first().locator('a').focus()
    await page.keyboard.press('Enter')
    await page.waitForSelector(card)
    await page.keyboard.press('Escape')
    await page.waitForSelector(card, { state: 'detached' })
    assert.ok(await page.evaluate(() => document.activeElement.closest('ibid-cite')))
    await page.locator('ibid-cite').nth(2).click()
    await page.waitForSelector(card)
    assert.equal(await page.locator(`${card} a[part=open]`).isVisible(), false, 'it opens what must not be opened')
    assert.equal(await page.title(), 'Somebody else')
  }),
  'the example of the documentation': () => onPage(browser, world, desktop, async page => {
    await page.goto(`${world.foreign}/example`)
    await page.waitForFunction(() => customElements.get('ibid-cite'))
    await page.locator('ibid-cite a').first().click()
    await page.waitForSelector(card)
    assert.match(await page.evaluate(s => document.querySelector(s).shadowRoot.textContent, card), /Herons of the lower valley.*p\. 7.*Most pairs nest/)
    assert.equal(await page.locator(`${card} a[part=open]`).getAttribute('href'), 'https://birds.example/herons.pdf#page=7')
  }),
  'on a phone': () => onPage(browser, world, phone, async page => {
    await page.goto(`${world.foreign}/`)
    await page.waitForFunction(() => customElements.get('ibid-cite'))
    await page.locator('ibid-cite').first().tap()
    await page.waitForSelector(card)
    assert.equal(Math.round((await page.locator(card).boundingBox()).width), 390)
    assert.deepEqual(await overflow(page), [])
  }),
  'without the script they are links': () => onPage(browser, world, { ...desktop, javaScriptEnabled: false }, async page => {
    await page.goto(`${world.foreign}/`)
    assert.equal(await page.locator('ibid-cite a').first().getAttribute('href'), 'https://birds.example/tonbo/census')
  }),
}))
